"""This file shares a node's cores between its ranks and the observer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SHARED_WITH_OBSERVER = "shares a core with the observer"
MORE_RANKS_THAN_CORES = "more ranks than cores"


@dataclass(frozen=True)
class Binding:
    """Which cores everybody on a node gets, and what a reader must know about it."""

    observer: int | None
    """The agent's own core; None where it shares one."""
    ranks: tuple[tuple[int, ...], ...]
    marks: tuple[str, ...]


def bind(cpus: Sequence[int], ranks: int, keep: int = 1) -> Binding:
    """Keep cores for the observer if two or more are left over, and give the ranks equal shares.

    What does not divide evenly stays idle: ranks of unequal size would wait for each other.
    """
    cpus = sorted(cpus)
    marks = []
    rest = cpus[: len(cpus) - keep] if len(cpus) - keep >= 2 else cpus
    observer = cpus[-1] if len(rest) < len(cpus) else None
    if observer is None:
        marks.append(SHARED_WITH_OBSERVER)
    share = len(rest) // ranks
    if share == 0:
        marks.append(MORE_RANKS_THAN_CORES)
        return Binding(observer, (tuple(rest),) * ranks, tuple(marks))
    shares = tuple(tuple(rest[rank * share : (rank + 1) * share]) for rank in range(ranks))
    return Binding(observer, shares, tuple(marks))
