"""These tests hold what a session of two sides plans."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.plan.plan import Plan
from harness.plan.turn_rules import in_words, reasons, with_partners
from harness.plan.two_sides import Side, two_sided

Planned = Callable[..., Plan]
STUDY = """\
title = "T"
[matrix]
workload = "tinycnn"
framework = "torch"
batch = [1, 2]
[measure]
"""


def of_both(plan: Plan) -> Plan:
    return two_sided("both", Side("one", plan, None), Side("two", plan, None))


@pytest.mark.parametrize(("asked", "blocks"), [("", 30), ("trials_at_most = 12\n", 12)])
def test_a_study_that_ends_once_answered_runs_all_its_blocks_of_two_sides(
    planned: Planned, asked: str, blocks: int
) -> None:
    plan = of_both(planned(f'{STUDY}stop = "answered"\n{asked}'))
    assert plan.measure.looks == (blocks,)
    assert not plan.measure.is_repeated
    assert len(plan.order) == 4 * blocks
    assert any(f"All {blocks} blocks are run" in note for note in plan.notes)


def test_blocks_that_cannot_tell_are_raised_where_a_study_ends_once_answered(
    planned: Planned,
) -> None:
    plan = of_both(planned(f'{STUDY}stop = "answered"\ntrials_at_most = 4\nbudget = "1 h"\n'))
    assert plan.measure.looks == (6,)
    assert plan.measure.budget_s is None
    assert any("or its budget ends no session" in note for note in plan.notes)


def test_a_study_of_fixed_blocks_keeps_them_and_says_nothing(planned: Planned) -> None:
    plan = of_both(planned(f"{STUDY}trials = 8\n"))
    assert plan.measure.looks == (8,)
    assert plan.notes == ("A is one, B is two.",)


def test_a_cell_takes_turns_with_the_one_that_it_is_compared_with(planned: Planned) -> None:
    plan = of_both(planned(STUDY))
    assert not reasons(plan, plan.platform)
    first, second, *_ = (cell.key for cell in plan.cells)
    assert with_partners(plan, plan.platform, {second}) == {first, second}
    (told,) = in_words(plan, plan.platform)
    assert "a cell of A and its cell of B live at the same time" in told
