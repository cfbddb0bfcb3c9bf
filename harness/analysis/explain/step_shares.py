"""The shares of a cell's step, by what they are compared by, with what they may miss.

A trace is disturbed by whatever else runs: only the quicker half of the traced steps counts. Means
over the same steps add up to one; medians would not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, median, stdev

from harness.store.attribution import Attribution, Operation

Key = tuple[str, str]
"""A layer's path, empty where it is of the whole step, and the phase."""

UNEXPLAINED = ("", "unexplained")
_WHOLE = ("update", "loss", "layout copy", "plain copy", "host gaps")
"""Phases that are compared as a whole: their operations are not divided alike everywhere."""


@dataclass(frozen=True)
class Share:
    """One part of a step."""

    mean: float
    error: float
    """Its standard error over the traced steps."""
    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class StepShares:
    """All parts of a cell's step."""

    traced_by: str
    traced_step_s: float
    """The median traced step."""
    untraced_step_s: float | None
    """The median of the steps beside them that nothing traced; None of runs that made none."""
    steps: int
    """How many of them count."""
    parts: Mapping[Key, Share]


def step_shares(of: Attribution) -> StepShares:
    """Join the parts that are compared as a whole, over the quicker half of the traced steps."""
    middle = median(of.step_s)
    quick = [at for at, one in enumerate(of.step_s) if one <= middle]
    rows: dict[Key, list[float]] = {}
    operations: dict[Key, list[Operation]] = defaultdict(list)
    for part in of.parts:
        key = _key(part.site, part.phase)
        row = rows.setdefault(key, [0.0] * len(quick))
        for place, at in enumerate(quick):
            row[place] += part.shares[at]
        operations[key] += part.operations
    parts = {
        key: Share(fmean(row), _error(row), tuple(operations[key])) for key, row in rows.items()
    }
    untraced_s = median(of.untraced_s) if of.untraced_s else None
    return StepShares(of.traced_by, middle, untraced_s, len(quick), parts)


def _key(site: str, phase: str) -> Key:
    if phase in _WHOLE:
        return "", phase
    return (site, phase) if site and phase != "other" else UNEXPLAINED


def _error(row: Sequence[float]) -> float:
    return stdev(row) / sqrt(len(row)) if len(row) > 1 else 0.0
