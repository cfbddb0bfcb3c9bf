"""Plan the rounds of a group: how many, and how long each cell's turn is.

In every round each cell has one turn, so that a cell and the reference are measured within seconds
of each other; all turns of a cell add up to what the study asks for.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from harness.worker.job import Span
from harness.worker.windows.turns import FEWEST_STEPS

FEWEST_PLANNED_ROUNDS = 7
"""Shorter turns are taken where there would be fewer rounds, of which a median says little."""


@dataclass(frozen=True)
class Rounds:
    """The rounds of a group."""

    count: int
    until: Span
    """What each cell measures in all of them together."""

    def span(self, number: int) -> Span:
        """Give the length of each cell's turn in a round; rounds count from 1."""
        if self.until.seconds is not None:
            return Span(seconds=self.until.seconds / self.count)
        steps = self.until.steps or 0
        return Span(steps=steps * number // self.count - steps * (number - 1) // self.count)


def rounds(until: Span, *, turn_s: float, steps_s: Collection[float]) -> Rounds:
    """Plan rounds for cells of which a step takes so many seconds.

    A turn holds a few steps of every cell; where the length is told in steps, the fastest cell's
    turns are as long as asked for, and the others' longer.
    """
    few_s = FEWEST_STEPS * max(steps_s)
    if until.seconds is not None:
        most = int(until.seconds / few_s) if few_s else FEWEST_PLANNED_ROUNDS
        asked = round(until.seconds / max(turn_s, few_s))
    else:
        steps = until.steps or 0
        most = steps // FEWEST_STEPS
        asked = min(most, round(steps * min(steps_s) / turn_s))
    return Rounds(max(1, asked, min(most, FEWEST_PLANNED_ROUNDS)), until)
