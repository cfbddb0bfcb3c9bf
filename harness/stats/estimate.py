"""Turn the trials of a cell into one number and say how far to trust it.

A trial is the unit of repetition. The number is the geometric mean of the trials: the only middle
whose ratios agree with the mean of the blocks' log ratios, by which cells are compared. Its
interval lies between two of the ordered trials. Whatever the distribution, that holds the median
with an exact confidence (David & Nagaraja, Order Statistics, 2003, section 7.1): P(x(k) <= median
<= x(n+1-k)) = 1 - 2 P(Binomial(n, 1/2) < k). Where logarithms are symmetric, the median is the
geometric mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb, exp, fsum, log

LEVEL = 0.95


@dataclass(frozen=True)
class OrderInterval:
    """The interval between two ordered trials, and the confidence it really has."""

    low: float
    high: float
    level: float
    rank: int
    """1: the smallest and the largest trial; 2: the second smallest and second largest …"""
    n: int
    is_drawn_out: bool = False
    """Whether an end is the estimate, which lay outside of these trials."""

    @property
    def meaning(self) -> str:
        """Say in plain words what the two ends are."""
        if self.rank == 1:
            return f"smallest and largest of {self.n} trials"
        place, out = ordinal(self.rank), ", drawn out to the mean" if self.is_drawn_out else ""
        return f"{place} smallest and {place} largest of {self.n} trials{out}"


def median(values: Sequence[float]) -> float:
    """Give the middle value, or the mean of the two in the middle."""
    if not values:
        raise ValueError("the median of nothing is unknown")
    ordered, half = sorted(values), len(values) // 2
    if len(ordered) % 2:
        return ordered[half]
    return ordered[half - 1] + (ordered[half] - ordered[half - 1]) / 2


def centre(values: Sequence[float]) -> float:
    """Give the geometric mean of rates, times or ratios, all above zero."""
    if not values:
        raise ValueError("the mean of nothing is unknown")
    if min(values) == max(values):
        return values[0]
    return exp(fsum(map(log, values)) / len(values))


def coverage(n: int, rank: int) -> float:
    """Give the exact confidence of the interval between the rank-th trials from both ends."""
    return 1 - sum(comb(n, k) for k in range(rank)) / 2.0 ** (n - 1)


def median_interval(values: Sequence[float], level: float = LEVEL) -> OrderInterval | None:
    """Give the narrowest order-statistic interval of at least this confidence.

    With too few trials for the level (five or fewer for 95 %) it is the smallest and the largest
    trial, with the lower confidence that they have; with one trial there is none.
    """
    n = len(values)
    if n < 2:
        return None
    rank = 1
    while rank < n // 2 and coverage(n, rank + 1) >= level:
        rank += 1
    ordered = sorted(values)
    return OrderInterval(ordered[rank - 1], ordered[n - rank], coverage(n, rank), rank, n)


def centre_interval(values: Sequence[float], level: float = LEVEL) -> OrderInterval | None:
    """Give the median's interval, drawn out to the centre where a few far trials put it outside."""
    told, middle = median_interval(values, level), centre(values)
    if told is None or told.low <= middle <= told.high:
        return told
    ends = min(told.low, middle), max(told.high, middle)
    return replace(told, low=ends[0], high=ends[1], is_drawn_out=True)


def trials_for(level: float) -> int:
    """Give the fewest trials whose smallest and largest reach this confidence."""
    n = 2
    while coverage(n, 1) < level:
        n += 1
    return n


def ordinal(number: int) -> str:
    """Write second, third, 4th, 22nd."""
    if number < 4:
        return ("zeroth", "first", "second", "third")[number]
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10)
    return f"{number}{ending or 'th'}"
