"""These tests hold what a budget chooses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.errors import UsageError
from harness.plan.duration import estimate
from harness.plan.plan import Plan
from harness.plan.power.prospects import KnownNoise, Split
from harness.plan.power.within_budget import within_budget
from harness.study.measure import Measure

Planned = Callable[..., Plan]
CELLS = """\
title = "T"
[matrix]
workload = "tinycnn"
framework = "torch"
batch = [1, 2, 4, 8, 16]
[measure]
reference = { batch = 1 }
"""


@pytest.mark.parametrize("hours", [0.2, 0.5, 1, 2, 4])
def test_what_is_chosen_fits_into_the_budget_and_uses_it(planned: Planned, hours: float) -> None:
    plan = within_budget(planned(f'{CELLS}budget = "{hours} h"\n'))
    trials, until = plan.measure.trials, plan.measure.until
    assert 6 <= trials <= 30
    assert len(plan.order) == 5 * trials
    took_s = estimate(plan).total_s
    assert took_s <= hours * 3600
    if trials < 30:
        assert took_s > hours * 3600 * (1 - 1 / trials)
    assert until.seconds is not None


def test_more_time_buys_blocks_first_and_longer_trials_then(planned: Planned) -> None:
    designs = [
        within_budget(planned(f'{CELLS}budget = "{hours} h"\n')).measure
        for hours in (0.2, 0.5, 1, 2, 4)
    ]
    lengths = [one.until.seconds for one in designs]
    assert lengths == sorted(lengths)
    assert 6 <= designs[0].trials < designs[-1].trials
    assert (designs[-1].trials, lengths[-1]) == (30, 60.0)


def test_a_length_that_was_said_stays(planned: Planned) -> None:
    told = within_budget(planned(f'{CELLS}budget = "1 h"\nuntil = "40 s"\n')).measure
    assert told.until.seconds == 40
    assert 6 <= told.trials < 3600 / (5 * 40)


def test_trials_are_short_where_processes_differ_and_long_where_they_do_not(
    planned: Planned,
) -> None:
    plan = planned(f'{CELLS}budget = "1 h"\n')

    def chosen(split: Split) -> Measure:
        return within_budget(plan, lambda _: KnownNoise(0.05, 1, True, split)).measure

    short, long = chosen(Split(0.05**2, 0.001**2)), chosen(Split(0.001**2, 0.5**2))
    assert (short.until.seconds, short.trials) == (10, 30)
    assert (long.until.seconds, long.trials) == (30, 16)


def test_too_small_a_budget_is_refused_with_what_it_takes(planned: Planned) -> None:
    with pytest.raises(UsageError, match=r"6 blocks of the shortest trials.*take about"):
        within_budget(planned(f'{CELLS}budget = "2 min"\n'))


def test_trials_and_a_budget_that_would_choose_them_contradict(
    refusal: Callable[[str], str],
) -> None:
    said = refusal(f'{CELLS}trials = 6\nbudget = "1 h"\n')
    assert "measure.budget: chooses how many trials there are" in said


def test_a_budget_that_ends_repeating_chooses_nothing(planned: Planned) -> None:
    plan = planned(f'{CELLS}stop = "answered"\nbudget = "1 h"\n')
    assert within_budget(plan) is plan
