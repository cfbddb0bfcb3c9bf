"""Word an answer (faster, slower, same, cannot tell) from an interval of log ratios."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, log

ALPHA = 0.05
EQUIVALENCE = 0.03
"""Ratios between 1/1.03 and 1.03 are the same for practical purposes."""
FEWEST_BLOCKS = 6
"""With five blocks the smallest p-value of 2^5 flips, 1/16, is above 5 %."""
CANNOT_TELL = "cannot tell"
MOST_BLOCKS = 200
"""No estimate of further blocks beyond this is worth printing."""


def answer(low: float, high: float, p: float, alpha: float, equivalence: float) -> tuple[str, str]:
    """Give the answer and its reason; "same" comes first, as it says that a difference is small."""
    margin = log(1 + equivalence)
    if -margin <= low and high <= margin:
        return "same", f"the whole interval is within {equivalence * 100:.0f} % of 1"
    if low > 0 and p <= alpha:
        return "faster", "the interval is above 1"
    if high < 0 and p <= alpha:
        return "slower", "the interval is below 1"
    return CANNOT_TELL, "the interval includes 1"


def more_blocks(
    centre: float, blocks: int, *, margin: float, reach: Callable[[int], float]
) -> int | None:
    """Estimate how many more blocks would tell, if centre and deviation stay as they are.

    ``reach`` gives half the interval of so many blocks. The aim is one that either excludes 1 or
    lies within the margin, whichever is nearer.
    """
    needed = max(abs(centre), margin - abs(centre))
    enough = (count for count in range(blocks + 1, MOST_BLOCKS + 1) if reach(count) < needed)
    return next((count - blocks for count in enough), None)


def ratio(logarithm: float) -> float:
    """Give the ratio of a logarithm that may be too large for one."""
    return exp(logarithm) if logarithm < 700 else inf


def ends(low: float, high: float) -> tuple[float | None, float | None]:
    """Give an interval of logarithms as ratios; too few blocks for its level leave no interval."""
    if low == -inf and high == inf:
        return None, None
    return ratio(low), ratio(high)
