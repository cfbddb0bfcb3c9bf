"""These tests hold that a day's effect is not told as a change, and that lost trials bound one."""

from __future__ import annotations

from math import exp

import pytest
from scipy.stats import t as student

from harness.stats.between_runs.lost_trials import SessionLosses
from harness.stats.between_runs.sessions import between, scatter
from harness.stats.between_runs.unpaired import changes
from tests.stats.sessions_truth import Night, answers, changed

PAIRS = 200


@pytest.mark.parametrize("repeats", [3, 10])
def test_a_days_effect_is_a_change_to_two_runs_alone_and_not_beside_repeated_ones(
    repeats: int,
) -> None:
    alone, held = answers(Night(day=0.02, change=0.0, repeats=repeats), PAIRS)
    assert changed(alone) > 0.4
    assert changed(held) <= 0.05 + 3 * (0.05 * 0.95 / PAIRS) ** 0.5


def test_a_change_that_is_larger_than_days_is_told() -> None:
    _, held = answers(Night(day=0.02, change=0.15, repeats=10), PAIRS)
    assert changed(held) > 0.9


def test_without_a_repeated_run_nothing_is_told() -> None:
    alone, held = answers(Night(day=0.0, change=0.3, repeats=0), 20)
    assert changed(alone) == 1
    assert held == {"cannot tell": 20}


def test_scatter_is_pooled_within_groups_of_which_single_runs_say_nothing() -> None:
    assert scatter([[1.0], [2.0]]) is None
    pooled = scatter([[0.0, 2.0], [10.0, 12.0, 14.0], [5.0]])
    assert pooled is not None
    assert (pooled.freedom, pooled.sessions) == (3, 5)
    assert pooled.deviation == pytest.approx(((2 + 8) / 3) ** 0.5)


def test_the_interval_is_students_shared_by_the_cells() -> None:
    before, after = {"a": [0.0, 0.01], "b": [0.0, 0.01]}, {"a": [0.2, 0.21], "b": [0.0, 0.01]}
    rows = [{name: list[float | None](row) for name, row in one.items()} for one in (before, after)]
    known = scatter([[0.0, 0.03, 0.06, 0.03]])
    assert known is not None
    told = between(changes(*rows), before, after, {"a": known, "b": known})["a"]
    reach = student.ppf(1 - 0.0125, 3) * known.deviation * 2**0.5
    assert told.low == pytest.approx(exp(0.2 - reach), rel=1e-4)
    assert told.high == pytest.approx(exp(0.2 + reach), rel=1e-4)
    assert told.p == pytest.approx(
        min(1, 4 * student.sf(0.2 / (known.deviation * 2**0.5), 3)), rel=1e-3
    )


@pytest.mark.parametrize(
    ("losses", "side", "excess", "is_own"),
    [
        (SessionLosses(0, 6, 0, 6), -1, 0, False),
        (SessionLosses(0, 6, 1, 6), 1, 1, False),
        (SessionLosses(0, 6, 3, 6), 1, 3, True),
        (SessionLosses(2, 6, 2, 6), -1, 0, False),
        (SessionLosses(3, 12, 3, 6), 1, 2, False),
        (SessionLosses(4, 6, 0, 12), -1, 4, True),
    ],
)
def test_what_one_session_lost_beyond_the_others_share(
    losses: SessionLosses, side: int, excess: int, is_own: bool
) -> None:
    assert losses.excess == excess
    assert losses.is_own is is_own
    assert not excess or losses.side == side
