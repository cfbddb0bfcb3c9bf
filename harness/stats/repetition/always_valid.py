"""Give an interval of two cells' log ratio that holds at every look, however often one looks.

The block log ratios are weighed for a difference of unknown size against none: the likelihood of
their Student's t under effects that are normal, with ``EFFECTS`` times the noise's variance, over
that under no effect. Whatever the noise, that ratio is a martingale under "no difference" (it is
invariant to scale: Lai, *Annals of Statistics* 4, 1976), so that it exceeds 20 at any time in at
most one study of twenty (Ville). The differences that it does not refute are the interval. Normal
block log ratios are assumed; docs/method.md says what others do.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf, log, sqrt
from statistics import fmean, stdev

EFFECTS = 4.0
"""Variance of the effects that are looked for, over that of a block's log ratio."""
FEWEST_BLOCKS_AT_ANY_TIME = 3
"""Of fewer the scatter says next to nothing."""
_LEAST = 1e-6
"""No scatter is believed to be less."""


def interval(logs: Sequence[float], alpha: float) -> tuple[float, float]:
    """Give both ends; without any where there are too few blocks."""
    if len(logs) < FEWEST_BLOCKS_AT_ANY_TIME:
        return -inf, inf
    centre, half = fmean(logs), reach(len(logs), stdev(logs), alpha)
    return centre - half, centre + half


def reach(count: int, deviation: float, alpha: float) -> float:
    """Give half the interval of so many blocks that scatter so much."""
    spread = 1 + count * EFFECTS
    bound = (sqrt(spread) / alpha) ** (2 / count)
    if count < FEWEST_BLOCKS_AT_ANY_TIME or bound >= spread:
        return inf
    t = sqrt((count - 1) * (bound - 1) / (1 - bound / spread))
    return t * max(deviation, _LEAST) / sqrt(count)


def p_value(logs: Sequence[float]) -> float:
    """Give the smallest error at which "no difference" is refuted by now."""
    count = len(logs)
    if count < FEWEST_BLOCKS_AT_ANY_TIME:
        return 1.0
    spread = 1 + count * EFFECTS
    t = fmean(logs) / max(stdev(logs), _LEAST) * sqrt(count)
    share = t * t / (count - 1)
    evidence = count / 2 * (log(1 + share) - log(1 + share / spread)) - log(spread) / 2
    return min(1.0, exp(-evidence))
