"""Say how far a cell's rate by turns is from its rate alone, and widen ratios by what it may be.

An alternation is the logarithm of the rate right after another trial's turn over that right after
the trial's own. Their median is the bias, with the exact interval between two of them in order,
whatever their distribution. The bias of a ratio is the difference of two; what is
left of the ratio without it, that of rates alone, has an interval that follows from all three by
MOVER (Zou & Donner, Statistics in Medicine 27, 2008). A ratio is not corrected: its interval is
drawn out until it holds both, that by turns and that of rates alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, log

from harness.stats.estimate import median, median_interval

FEWEST = 20
"""Alternations below which nothing is said."""
_SHOWN = 0.99
_SLOWEST = 4.5
"""(1 + q) / 2 (1 - q), where 0.8 of a bias is left after half a turn."""
MOST = 400
"""Alternations that are kept and looked at; so many say what there is to say."""
_NARROW = log(1.01)
"""Half an interval: a bias that is known so well needs no more alternations."""


@dataclass(frozen=True)
class TurnBias:
    """A bias as a logarithm: negative where turns are slower."""

    centre: float
    low: float
    high: float
    count: int

    def is_within(self, share: float) -> bool:
        """Whether all that is plausible lies within a share."""
        return -log(1 + share) <= self.low and self.high <= log(1 + share)


def turn_bias(alternations: Sequence[float]) -> TurnBias | None:
    """Estimate it; None of too few alternations."""
    interval = median_interval(alternations)
    if interval is None or len(alternations) < FEWEST:
        return None
    return TurnBias(median(alternations), interval.low, interval.high, len(alternations))


def fading(changes: Sequence[float]) -> TurnBias | None:
    """Give what is left of a bias in a rate that changes from one half of a turn to the other.

    None unless a change is shown, at 99 %. ``changes`` are the logarithms of the first half's rate
    over the second's. What fades at once leaves half of the change in the mean of both halves; what
    fades more slowly leaves more, and what takes two turns 4.5 times the change.
    """
    interval = median_interval(changes, _SHOWN)
    if interval is None or len(changes) < FEWEST or interval.low <= 0 <= interval.high:
        return None
    low, high = interval.low, interval.high
    least, most = (low / 2, high * _SLOWEST) if low > 0 else (low * _SLOWEST, high / 2)
    return TurnBias(median(changes) / 2, least, most, len(changes))


def is_known(alternations: Sequence[float]) -> bool:
    """Tell whether further alternations would say little."""
    found = turn_bias(alternations)
    narrow = found is not None and found.high - found.low <= 2 * _NARROW
    return narrow or len(alternations) >= MOST


def widened(
    ratio: float, low: float, high: float, *, cell: TurnBias, reference: TurnBias
) -> tuple[float, float]:
    """Give the ends of a log ratio's interval so that it also holds the ratio of rates alone."""
    bias = cell.centre - reference.centre
    least = bias - hypot(cell.centre - cell.low, reference.high - reference.centre)
    most = bias + hypot(cell.high - cell.centre, reference.centre - reference.low)
    alone = ratio - bias
    return (
        min(low, alone - hypot(ratio - low, most - bias)),
        max(high, alone + hypot(high - ratio, bias - least)),
    )
