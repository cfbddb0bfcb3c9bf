"""Say what a plan's comparisons can tell, before they cost anything."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from harness.plan.plan import Plan
from harness.plan.turn_rules import has_two_sides, task_of
from harness.stats.answers import FEWEST_BLOCKS
from harness.stats.power import OFTEN, SELDOM, last_look, power, smallest_difference

_SCATTER = (0.01, 0.03, 0.1)
"""How much trials scatter: a quiet machine, an ordinary one, one that others use."""
_DIFFERENCES = (0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
"""Differences that a sentence names."""
_WORTH_SEEKING = 0.1
"""A study that does not find even this is hardly worth its time."""


@dataclass(frozen=True)
class Split:
    """What the variance of a trial's logarithm is made of."""

    stays: float
    """Between processes, however long they run."""
    shrinks: float
    """Within a trial of one second; less in a longer one."""

    def variance(self, seconds: float) -> float:
        """Give that of a trial of such a length."""
        return self.stays + self.shrinks / seconds


@dataclass(frozen=True)
class KnownNoise:
    """How much trials scattered in earlier runs on this machine."""

    scatter: float
    """Standard deviation of one trial's logarithm."""
    runs: int
    is_of_these_cells: bool
    """Whether it was measured of cells of the plan, or of others."""
    split: Split | None = None
    """Known where trials took turns."""

    def __str__(self) -> str:
        whose = "these cells" if self.is_of_these_cells else "other cells"
        return f"{self.scatter * 100:.2g} %, as those of {whose} did in " + (
            "an earlier run here" if self.runs == 1 else f"{self.runs} earlier runs here"
        )


@dataclass(frozen=True)
class _Design:
    """What decides how much is found."""

    compared: int
    blocks: int
    is_look: bool

    def smallest(self, scatter: float) -> float:
        return smallest_difference(self.compared, self.blocks, scatter, is_look=self.is_look)

    def power(self, difference: float, scatter: float) -> float:
        return power(self.compared, self.blocks, difference, scatter, is_look=self.is_look)


def prospects(plan: Plan, noise: KnownNoise | None = None) -> str | None:
    """Say how small a difference will be found; None where nothing is compared, or nothing known.

    Looks at intervals share the error in another way, so that such a plan promises nothing.
    """
    design = _design(plan)
    if design is None or not can_answer(plan):
        return None
    upto = f" by block {design.blocks}" if design.is_look else ""
    if noise is None:
        found = (
            f"{design.smallest(scatter) * 100:.2g} % where they scatter by {scatter * 100:.0f} %"
            for scatter in _SCATTER
        )
        return (
            f"What it can tell: {OFTEN * 10:.0f} times in 10{upto}, that a cell's trials differ "
            f"from the reference's by {', '.join(found)}."
        )
    shares = {one: design.power(one, noise.scatter) for one in _DIFFERENCES}
    found_often = next((one for one in _DIFFERENCES if shares[one] >= OFTEN), None)
    seldom = [one for one in _DIFFERENCES if shares[one] < 1 / 2]
    said = []
    if found_often is not None:
        size = f"{found_often * 100:.0f} %"
        said.append(f"{size} between a cell and the reference, {OFTEN * 10:.0f} times in 10{upto}")
    if seldom:
        chance = max(1, round(shares[seldom[-1]] * 100))
        said.append(f"{seldom[-1] * 100:.0f} % would be found only {chance} times in 100")
    return f"What it can tell: {'; '.join(said)}, where trials scatter by {noise}."


def warnings(plan: Plan, noise: KnownNoise | None = None) -> tuple[str, ...]:
    """Warn where nothing but "cannot tell" can come out."""
    compared, blocks = compared_at_most(plan), plan.measure.looks[-1]
    if compared and not can_answer(plan):
        has = f"measure.trials is {blocks}"
        if plan.measure.is_repeated:
            has = f"measure.trials_at_most is {blocks}"
        told = (
            f'every comparison will end as "cannot tell", whatever the difference: an answer takes '
            f"{FEWEST_BLOCKS} blocks, and {has}. Rates will be known."
        )
        return (told,)
    design = _design(plan)
    if design is None or noise is None:
        return ()
    chance = design.power(_WORTH_SEEKING, noise.scatter)
    if chance > SELDOM:
        return ()
    told = (
        f'expect "cannot tell": trials scatter by {noise}, so that even a difference of '
        f"{_WORTH_SEEKING * 100:.0f} % would be found in {chance * 100:.0f} of 100 studies like "
        f"this one, and {design.smallest(noise.scatter) * 100:.0f} % in {OFTEN * 100:.0f}. More "
        "blocks, turns, or a machine left alone would find smaller ones."
    )
    return (told,)


def can_answer(plan: Plan) -> bool:
    """Whether any comparison of a plan has blocks enough for an answer."""
    is_sequence = plan.measure.stop is not None and compared_at_most(plan) == 1
    return is_sequence or plan.measure.looks[-1] >= FEWEST_BLOCKS


def compared_at_most(plan: Plan) -> int:
    """Count the cells beside the reference, in the task that has the most; of two sides all pairs.

    Messages of different sizes are not compared: bytes a second of them differ.
    Of a session of two sides, each cell of B is held against its own, and all share the error.
    """
    if has_two_sides(plan):
        return sum(cell.against is not None for cell in plan.cells)
    alike = Counter((task_of(cell), cell.factors["message_bytes"]) for cell in plan.cells)
    return max(alike.values()) - 1


def _design(plan: Plan) -> _Design | None:
    """Give what the table of powers is asked for; None where it says nothing of a plan."""
    compared, measure = compared_at_most(plan), plan.measure
    most = measure.looks[-1]
    if not compared or measure.until_interval is not None:
        return None
    if measure.stop is None:
        return _Design(compared, most, is_look=False) if most >= FEWEST_BLOCKS else None
    look = last_look(most)
    return None if look is None else _Design(compared, look, is_look=True)
