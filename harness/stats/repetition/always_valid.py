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
FEWEST_BLOCKS = 3
_LEAST = 1e-6
"""No scatter is believed to be less."""


def interval(logs: Sequence[float], alpha: float) -> tuple[float, float]:
    """Give both ends; without any where there are too few blocks."""
    count = len(logs)
    if count < FEWEST_BLOCKS:
        return -inf, inf
    spread = 1 + count * EFFECTS
    bound = (sqrt(spread) / alpha) ** (2 / count)
    if bound >= spread:
        return -inf, inf
    t = sqrt((count - 1) * (bound - 1) / (1 - bound / spread))
    reach = t * max(stdev(logs), _LEAST) / sqrt(count)
    centre = fmean(logs)
    return centre - reach, centre + reach


def p_value(logs: Sequence[float]) -> float:
    """Give the smallest error at which "no difference" is refuted by now."""
    count = len(logs)
    if count < FEWEST_BLOCKS:
        return 1.0
    spread = 1 + count * EFFECTS
    t = fmean(logs) / max(stdev(logs), _LEAST) * sqrt(count)
    share = t * t / (count - 1)
    evidence = count / 2 * (log(1 + share) - log(1 + share / spread)) - log(spread) / 2
    return min(1.0, exp(-evidence))


def blocks_needed(
    centre: float, deviation: float, blocks: int, *, alpha: float, margin: float, most: int
) -> int | None:
    """Estimate how many more blocks would tell, if centre and deviation stay as they are."""
    needed = max(abs(centre), margin - abs(centre))
    for count in range(blocks + 1, most + 1):
        spread = 1 + count * EFFECTS
        bound = (sqrt(spread) / alpha) ** (2 / count)
        if count < FEWEST_BLOCKS or bound >= spread:
            continue
        t = sqrt((count - 1) * (bound - 1) / (1 - bound / spread))
        if t * deviation / sqrt(count) < needed:
            return count - blocks
    return None
