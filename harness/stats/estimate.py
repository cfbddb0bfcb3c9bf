"""Turn the trials of a cell into one number and say how far to trust it.

A trial is the unit of repetition. The median over trials carries an interval between two of the
ordered trials, whose confidence is exact whatever the distribution (David & Nagaraja, Order
Statistics, 2003, section 7.1): P(x(k) <= median <= x(n+1-k)) = 1 - 2 P(Binomial(n, 1/2) < k).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

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

    @property
    def meaning(self) -> str:
        """Say in plain words what the two ends are."""
        if self.rank == 1:
            return f"smallest and largest of {self.n} trials"
        return f"{ordinal(self.rank)} smallest and {ordinal(self.rank)} largest of {self.n} trials"


def median(values: Sequence[float]) -> float:
    """Give the middle value, or the mean of the two in the middle."""
    if not values:
        raise ValueError("the median of nothing is unknown")
    ordered, half = sorted(values), len(values) // 2
    if len(ordered) % 2:
        return ordered[half]
    return ordered[half - 1] + (ordered[half] - ordered[half - 1]) / 2


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
