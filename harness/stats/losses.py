"""Bound what a comparison says where one of two cells lost trials that the other kept.

A timeout, or a rejection followed by another try, takes a cell's slow trials and leaves its fast
ones, so that what is left favours the cell that lost. So its answer has to hold as well where each
trial that it lost beyond the other's stands in as a far worse one, twice as far from the median as
the worst that was seen. Where chance does not explain who lost them, nothing is said in the loser's
favour at all, and what is said against it is a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import Protocol

from harness.stats import answers
from harness.stats.compare import Answer
from harness.stats.estimate import median

CHANCE = 1 / 8
"""So rarely must chance give one cell as many of the losses: three of three, five of six."""


class Uneven(Protocol):
    """Losses of two sides, of which one lost more."""

    @property
    def side(self) -> int:
        """1 where the side that is answered for lost more, -1 where the other did."""

    @property
    def is_own(self) -> bool:
        """Whether chance does not explain that it was so often the same side."""


@dataclass(frozen=True)
class Losses:
    """The blocks in which trials were lost by the cell and not by the reference, and the others."""

    cell: frozenset[int] = frozenset()
    reference: frozenset[int] = frozenset()

    @property
    def excess(self) -> int:
        """How many blocks the cell lost more than the reference; negative: the other way."""
        return len(self.cell - self.reference) - len(self.reference - self.cell)

    @property
    def is_own(self) -> bool:
        """Whether chance does not explain that it was so often the same cell."""
        cell, reference = len(self.cell - self.reference), len(self.reference - self.cell)
        count, most = cell + reference, max(cell, reference)
        as_many = sum(comb(count, one) for one in range(most, count + 1))
        return count > 0 and as_many <= CHANCE * 2**count

    @property
    def side(self) -> int:
        """1 where the cell lost more, -1 where the reference did."""
        return 1 if self.excess > 0 else -1


def compared(
    logs: Mapping[str, Mapping[int, float]],
    losses: Mapping[str, Losses],
    *,
    described: Callable[[str], str],
    equivalence: float,
    compare: Callable[[Mapping[str, Sequence[float | None]]], dict[str, Answer]],
) -> dict[str, Answer]:
    """Answer for every cell, from its log ratio by block; ``compare`` answers by the blocks alone.

    ``described`` says which trials a cell and its reference lost.
    """
    told = compare(_rows(logs))
    uneven = {key for key, lost in losses.items() if lost.excess and logs[key]}
    if not uneven:
        return told
    worse = {key: stood_in(row, losses[key]) if key in uneven else row for key, row in logs.items()}
    beside = compare(_rows(worse))
    for key in uneven:
        told[key] = bounded(
            told[key], beside[key], losses[key], equivalence=equivalence, lost=described(key)
        )
    return told


def _rows(logs: Mapping[str, Mapping[int, float]]) -> dict[str, list[float | None]]:
    blocks = sorted({block for row in logs.values() for block in row})
    return {key: [row.get(block) for block in blocks] for key, row in logs.items()}


def stood_in(logs: Mapping[int, float], losses: Losses) -> dict[int, float]:
    """Give the log ratios of the blocks with far worse ones where the loser lost more."""
    both = (losses.cell, losses.reference)
    mine, others = both if losses.side > 0 else both[::-1]
    places = sorted(mine - others, key=lambda block: (block in logs, block))[: abs(losses.excess)]
    values = [losses.side * one for one in logs.values()]
    worst = losses.side * (2 * min(values) - median(values))
    return {**logs, **dict.fromkeys(places, worst)}


def bounded(
    told: Answer, beside: Answer, losses: Uneven, *, equivalence: float, lost: str
) -> Answer:
    """Give the answer that holds whatever became of the lost trials; ``lost`` says which they are.

    ``beside`` is the answer where far worse trials stand in. The interval's end that speaks for the
    loser is the less favourable of both.
    """
    if told.low is None or told.high is None or told.p is None:
        return replace(told, why=f"{told.why}; {lost}")
    low, high = told.low, told.high
    if beside.low is None or beside.high is None or beside.p is None:
        return _open(told, low, high, None, f"what is left says nothing: {lost}")
    if losses.side > 0:
        low = min(low, beside.low)
    else:
        high = max(high, beside.high)
    against = "slower" if losses.side > 0 else "faster"
    if told.answer == against:
        return replace(told, low=low, high=high, why=lost, is_bound=True)
    if losses.is_own:
        why = f"blocks were lost for a reason of a cell's own: {lost}"
        return _open(told, low, high, None, why)
    p, alpha = max(told.p, beside.p), 1 - told.level
    holds = told.answer in ("same", "faster", "slower") and p <= alpha
    if told.answer == "same":
        holds = 1 / (1 + equivalence) <= low and high <= 1 + equivalence
    elif holds:
        holds = low > 1 if told.answer == "faster" else high < 1
    if holds:
        return replace(told, low=low, high=high, p=p, why=f"{told.why}, and {lost}")
    return _open(told, low, high, beside.more_blocks, f"it could be otherwise, as {lost}")


def _open(told: Answer, low: float, high: float, more: int | None, why: str) -> Answer:
    return replace(told, low=low, high=high, answer=answers.CANNOT_TELL, more_blocks=more, why=why)
