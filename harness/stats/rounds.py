"""Compare two cells in one block in which they took turns.

Each round holds one turn of both, seconds apart, so what the machine did meanwhile multiplied both
alike and cancels in the round's ratio. The block's ratio is the median over its rounds: a burst in
one turn does not move it. The block stays the unit of every test, because the processes are the
same in all of its rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log, pi, sqrt

from harness.stats.estimate import median

FEWEST_ROUNDS = 3
"""A block in which two cells have fewer rounds in common does not count for them, unless their
steps are so long that fewer were planned."""
_NORMAL = 1.4826
"""Standard deviations of a normal distribution in its median distance from the median."""


def block_log_ratio(
    cell: Mapping[int, float], reference: Mapping[int, float], *, planned: int
) -> float | None:
    """Give the median log ratio of two cells' rates by round; None of too few common rounds."""
    logs = log_ratios(cell, reference)
    return median(logs) if len(logs) >= max(1, min(FEWEST_ROUNDS, planned)) else None


def log_ratios(cell: Mapping[int, float], reference: Mapping[int, float]) -> list[float]:
    """Give the log ratio of each round that both have."""
    common = sorted(cell.keys() & reference.keys())
    return [log(cell[number] / reference[number]) for number in common]


def standard_error(logs: Sequence[float]) -> float | None:
    """Give that of the median of a block's rounds, from their own; None of too few.

    From the median distance to the median, so that a burst in one turn does not count.
    """
    if len(logs) < FEWEST_ROUNDS:
        return None
    middle = median(logs)
    deviation = _NORMAL * median([abs(one - middle) for one in logs])
    return deviation * sqrt(pi / 2 / len(logs))
