"""Join layers that one of two cells computes as one.

A fusion belongs to the layer of its last operation, so what a product took is told of the layer
behind it. Beside a cell that fuses nothing, one would seem to gain in the product what it loses
behind it. Such layers are told together. They are looked for among a layer that multiplies and
those that follow it up to the next one: parts that one cell has are gone from the other, where the
one behind them takes more instead (backward the one before them, which comes later).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from harness.analysis.explain.step_shares import Key, StepShares, together
from harness.analysis.floors.layer_times import BACKWARD
from harness.analysis.limits.floors import training_of
from harness.verdicts.results import CellResult
from harness.worker.network.alone import FORWARD
from harness.worker.network.layers import Network
from harness.worker.network.shapes import macs_of_passes, sites

_NOTHING = 1e-5
"""Of a step: what takes no more is computed elsewhere."""
_LITTLE, _LESS = 1e-3, 0.1
"""Of a step, and of what it takes in the other cell: so little is left of a product: padding."""
_INSTEAD = 0.1
"""Of that, at least, the part that has it now takes more: fused, it may be much quicker."""

Members = Mapping[Key, Sequence[Key]]
"""The parts that a joined one is made of."""


class _Step(NamedTuple):
    shares: StepShares
    whole_s: float
    products: frozenset[str]
    """The layers that multiply."""

    def took_s(self, key: Key) -> float:
        found = self.shares.parts.get(key)
        return 0.0 if found is None else found.mean * self.whole_s


def joined(
    cell: CellResult, whole_s: tuple[float, float], mine: StepShares, theirs: StepShares
) -> tuple[StepShares, StepShares, Members]:
    """Join in both steps what either computes as one; ``cell`` has the network of both."""
    workload = training_of(cell)
    if workload is None:
        return mine, theirs, {}
    macs = macs_of_passes(workload.network)
    products = frozenset(path for path, passes in macs.items() if any(passes))
    first, second = _Step(mine, whole_s[0], products), _Step(theirs, whole_s[1], products)
    found: dict[Key, Sequence[Key]] = {}
    for layers in _neighbours(workload.network, products):
        for phase in (FORWARD, BACKWARD):
            keys = [(path, phase) for path in layers]
            ordered = keys if phase == FORWARD else keys[::-1]
            for span in _spans(first, second, ordered):
                ends = sorted((keys.index(span[0]), keys.index(span[-1])))
                first_path, last_path = (keys[at][0] for at in ends)
                found[f"{first_path} to {last_path}", phase] = span
    return _with(mine, found), _with(theirs, found), found


def _neighbours(network: Network, products: Container[str]) -> Iterator[list[str]]:
    """Divide a network's layers before each that multiplies."""
    layers: list[str] = []
    for site in sites(network):
        if site.path in products:
            yield layers
            layers = []
        layers.append(site.path)
    yield layers


def _spans(first: _Step, second: _Step, keys: Sequence[Key]) -> Iterator[Sequence[Key]]:
    """Give each stretch of parts, in the order of computing, that either cell computes as one."""
    at = 0
    while at < len(keys):
        ends = (_end(one, other, keys, at) for one, other in ((first, second), (second, first)))
        if end := next(filter(None, ends), None):
            yield keys[at : end + 1]
            at = end
        at += 1


def _end(one: _Step, other: _Step, keys: Sequence[Key], start: int) -> int | None:
    """Find the part that has in one cell what in the other is this one and those behind it."""
    lost_s = 0.0
    for at in range(start, len(keys)):
        here_s, there_s = one.took_s(keys[at]), other.took_s(keys[at])
        is_worth_it = lost_s > _LITTLE * other.whole_s
        if is_worth_it and here_s - there_s >= _INSTEAD * lost_s:
            return at
        if at == start and there_s <= _NOTHING * other.whole_s:
            return None
        left_s = _NOTHING * one.whole_s
        if keys[at][0] in one.products:
            left_s = min(_LITTLE * one.whole_s, _LESS * there_s)
        if here_s > left_s:
            return None
        lost_s += there_s
    return None


def _with(of: StepShares, found: Members) -> StepShares:
    """Put joined parts in the place of their members."""
    parts = dict(of.parts)
    for key, members in found.items():
        parts[key] = together([parts.pop(one) for one in members if one in parts])
    return replace(of, parts=parts)
