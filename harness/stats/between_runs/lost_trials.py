"""Bound what a comparison of two sessions says of a cell that lost trials in one of them.

As within a run (``losses.py``): what a timeout or a rejection took were its slow trials, so that
the session which lost more looks better than it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, comb

from harness.stats.between_runs.unpaired import Change
from harness.stats.compare import Answer
from harness.stats.estimate import median
from harness.stats.losses import CHANCE, bounded


@dataclass(frozen=True)
class SessionLosses:
    """In how many of its blocks a cell lost a trial, before and after."""

    before: int
    blocks_before: int
    after: int
    blocks_after: int

    @property
    def side(self) -> int:
        """1 where the second session lost more of its blocks, -1 where the first did."""
        return 1 if self.after * self.blocks_before > self.before * self.blocks_after else -1

    @property
    def excess(self) -> int:
        """How many blocks one session lost beyond the other's share."""
        more, less = (self.after, self.blocks_after), (self.before, self.blocks_before)
        if self.side < 0:
            more, less = less, more
        return max(0, ceil(more[0] - less[0] * more[1] / max(1, less[1])))

    @property
    def is_own(self) -> bool:
        """Whether chance does not explain that one session lost so many of them."""
        blocks, lost = self.blocks_before + self.blocks_after, self.before + self.after
        own, most = self.blocks_after, self.after
        if self.side < 0:
            own, most = self.blocks_before, self.before
        as_many = sum(
            comb(own, one) * comb(blocks - own, lost - one)
            for one in range(most, min(own, lost) + 1)
            if lost - one >= 0
        )
        return self.excess > 0 and as_many <= CHANCE * comb(blocks, lost)


def bound(
    told: Change,
    before: Sequence[float],
    after: Sequence[float],
    losses: SessionLosses,
    *,
    equivalence: float,
    lost: str,
    again: Callable[[Sequence[float], Sequence[float]], Change],
) -> Change:
    """Give the answer that holds whatever became of the lost trials; ``lost`` names them.

    ``again`` answers for other trials: far worse ones stand in for those that were lost.
    """
    if not losses.excess:
        return told
    if losses.side > 0:
        beside = again(before, _stood_in(after, losses.excess))
    else:
        beside = again(_stood_in(before, losses.excess), after)
    held = bounded(_answer(told), _answer(beside), losses, equivalence=equivalence, lost=lost)
    return replace(
        told,
        low=held.low,
        high=held.high,
        p=held.p,
        answer=held.answer,
        why=held.why,
        is_bound=held.is_bound,
    )


def _stood_in(logs: Sequence[float], count: int) -> list[float]:
    return [*logs, *[2 * min(logs) - median(logs)] * count]


def _answer(of: Change) -> Answer:
    blocks = min(of.before, of.after)
    return Answer(of.ratio, of.low, of.high, of.level, of.p, of.answer, blocks, None, of.why)
