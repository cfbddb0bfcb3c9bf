"""The forms in which a step's time may grow with the number of devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import log2

from harness.stats.growth.beyond_measured import Exchange

Term = Callable[[float], float]


def forms(*, strong: bool, exchange: Exchange | None) -> Iterator[tuple[str, tuple[Term, ...]]]:
    """Give each form's name and terms; what is computed comes first."""
    computing: tuple[Term, ...] = (lambda p: 1.0,)
    if strong:
        computing = (lambda p: 1 / p, lambda p: 1.0)
        yield "Amdahl's law", computing
    for name, way in _WAYS:
        if exchange is not None:
            yield f"all-reduce as in the sweep, {name}", (*computing, _swept(exchange, way))
    if not strong:  # there it cannot be told from Amdahl's share
        yield "bytes", (*computing, _bytes_sent)
    for name, way in _WAYS:
        yield f"messages, {name}", (*computing, way)
        if not strong:
            yield f"bytes and messages, {name}", (*computing, _bytes_sent, way)


def _swept(exchange: Exchange, way: Term) -> Term:
    return lambda p: exchange.alpha_s * way(p) + exchange.bytes_s * _bytes_sent(p)


def _bytes_sent(p: float) -> float:
    return 2 * (p - 1) / p


def _ring(p: float) -> float:
    return 2 * (p - 1)


def _tree(p: float) -> float:
    return 2 * log2(p)


_WAYS: tuple[tuple[str, Term], ...] = (("ring", _ring), ("tree", _tree))
