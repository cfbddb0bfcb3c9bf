"""These tests hold comparisons to their promises, by enumeration and by simulated studies."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

from harness.stats import moderated
from harness.stats.between_runs.unpaired import changes
from harness.stats.compare import (
    all_pairs,
    compare,
    pilot_leader,
    reachable_looks,
)
from harness.stats.student import critical_t
from tests.stats.truth import TRUTHS, monte_carlo_error, tally

NOISE = (0.004, -0.006, 0.001, 0.008, -0.003, -0.002)
rows = st.lists(st.floats(-0.5, 0.5), min_size=6, max_size=8)


def cell(effect: float, noise: tuple[float, ...] = NOISE) -> list[float | None]:
    return [effect + value for value in noise]


def test_a_clear_difference_has_a_direction() -> None:
    told = compare({"fast": cell(0.1), "slow": cell(-0.1)})
    assert told["fast"].answer == "faster"
    assert told["slow"].answer == "slower"
    assert told["fast"].ratio == pytest.approx(exp(0.1 + sum(NOISE) / 6))


def test_a_small_difference_for_sure_is_the_same() -> None:
    told = compare({"twin": cell(0.0)})["twin"]
    assert told.answer == "same"
    assert told.more_blocks is None


def test_noise_cannot_tell_and_says_how_many_more_blocks_would() -> None:
    told = compare({"noisy": cell(0.02, tuple(5 * value for value in NOISE))})["noisy"]
    assert told.answer == "cannot tell"
    assert told.more_blocks is not None
    assert told.more_blocks > 0


def test_five_blocks_cannot_tell_whatever_the_difference() -> None:
    told = compare({"fast": cell(1.0)[:5]})["fast"]
    assert told.answer == "cannot tell"
    assert (told.low, told.high, told.more_blocks) == (None, None, 1)
    assert "5 common blocks" in told.why


def test_one_cell_in_six_blocks_has_the_smallest_and_largest_ratio_as_interval() -> None:
    # inverting the flips of six blocks: theta is rejected only if all differences lie on one side
    told = compare({"a": cell(0.3)})["a"]
    assert told.low == pytest.approx(exp(0.3 + min(NOISE)), rel=1e-5)
    assert told.high == pytest.approx(exp(0.3 + max(NOISE)), rel=1e-5)


def test_a_missing_trial_leaves_the_other_blocks() -> None:
    seven = [*cell(0.1), None]
    assert compare({"a": seven, "b": [*cell(0.1), 0.1]})["a"].blocks == 6


def test_the_p_value_is_the_share_of_flips_that_reach_it() -> None:
    told = compare({"a": cell(0.1)})["a"]
    assert told.p == 2 / 2**6


@settings(max_examples=40, deadline=None)
@given(rows, st.permutations(range(6)))
def test_the_order_of_blocks_does_not_matter(values: list[float], order: list[int]) -> None:
    six = values[:6]
    before, after = compare({"a": six})["a"], compare({"a": [six[i] for i in order]})["a"]
    assert before.answer == after.answer
    assert before.p == after.p


@settings(max_examples=40, deadline=None)
@given(rows)
def test_exchanging_cell_and_reference_inverts_the_answer(values: list[float]) -> None:
    there, back = compare({"a": values})["a"], compare({"a": [-v for v in values]})["a"]
    inverted = {"faster": "slower", "slower": "faster"}
    assert back.answer == inverted.get(there.answer, there.answer)
    assert there.low is not None
    assert back.high is not None
    assert there.low * back.high == pytest.approx(1, rel=1e-4)


@settings(max_examples=30, deadline=None)
@given(st.lists(rows.map(lambda row: row[:6]), min_size=2, max_size=5), st.permutations(range(6)))
def test_the_order_of_blocks_does_not_matter_to_many_cells(
    table: list[list[float]], order: list[int]
) -> None:
    before = compare({str(place): row for place, row in enumerate(table)})
    after = compare({str(place): [row[i] for i in order] for place, row in enumerate(table)})
    for name, one in before.items():
        assert after[name].answer == one.answer
        assert after[name].low == pytest.approx(one.low)
        assert after[name].p == pytest.approx(one.p)


@settings(max_examples=30, deadline=None)
@given(st.lists(rows.map(lambda row: row[:6]), min_size=2, max_size=5))
def test_intervals_of_many_cells_include_one_unless_the_test_rejects(
    table: list[list[float]],
) -> None:
    for one in compare({str(place): row for place, row in enumerate(table)}).values():
        assert one.low is not None
        assert one.high is not None
        assert one.p is not None
        assert (one.low > 1 or one.high < 1) == (one.p <= 0.05) or one.p == pytest.approx(0.05)


def test_a_cell_that_takes_two_values_leaves_the_others_their_answers() -> None:
    # some flip gives all its residuals one sign, and its own variance is nothing there
    two = [0.01, -0.01, 0.01, -0.01, 0.01, -0.01]
    told = compare({"two": cell(0.0, tuple(two)), "fast": cell(0.3), "twin": cell(0.0)})
    assert told["fast"].answer == "faster"
    assert told["two"].low is not None


def test_a_small_difference_is_found_where_other_cells_tell_the_noise() -> None:
    chance = np.random.default_rng(11)
    rows_of_twenty = {str(i): list(0.01 * chance.standard_normal(6)) for i in range(19)}
    rows_of_twenty["slow"] = cell(-0.05, (0.02, -0.015, 0.01, 0.0, -0.02, 0.005))
    assert compare(rows_of_twenty)["slow"].answer == "slower"


def test_five_blocks_of_one_cell_do_not_silence_six_of_the_others() -> None:
    told = compare({"a": cell(0.1), "b": [*cell(0.1)[:5], None], "c": cell(-0.1)})
    assert [told[name].answer for name in "abc"] == ["faster", "cannot tell", "slower"]


@pytest.mark.parametrize("value", [0.05, 0.5, 1.0, 2.5, 12.0, 200.0])
def test_gamma_functions_agree_with_scipy(value: float) -> None:
    assert moderated.digamma(value) == pytest.approx(scipy.special.digamma(value), rel=1e-9)
    assert moderated.trigamma(value) == pytest.approx(scipy.special.polygamma(1, value), rel=1e-9)
    assert moderated.trigamma(moderated.inverse_trigamma(value)) == pytest.approx(value, rel=1e-6)


@pytest.mark.slow
def test_the_prior_is_found_again_in_variances_that_were_drawn_from_it() -> None:
    chance = np.random.default_rng(2)
    cells, prior = 4000, 8.0
    truth = 0.0004 * prior / chance.chisquare(prior, cells)
    seen = truth * chance.chisquare(20, cells) / 20
    found = moderated.common(seen, np.full(cells, 20.0))
    assert found.freedom == pytest.approx(prior, rel=0.15)
    assert found.variance == pytest.approx(0.0004, rel=0.05)


def test_many_blocks_are_sampled_the_same_way_each_time() -> None:
    chance = np.random.default_rng(3)
    row = list(0.01 + 0.02 * chance.standard_normal(20))
    assert compare({"a": row}, seed=7) == compare({"a": row}, seed=7)


@pytest.mark.slow
def test_intervals_hold_the_truth_together() -> None:
    told = tally(TRUTHS["3 cells 5 % faster, n 6"], 300)
    assert told.covered >= 0.95 - 3 * monte_carlo_error(0.95, told.studies)


def test_the_error_is_split_over_looks_that_could_speak() -> None:
    assert reachable_looks((6,)) == ((6,), 0.05)
    # at six blocks the smallest p of several cells is 5 %, above half of it
    assert reachable_looks((6, 12)) == ((12,), 0.05)
    assert reachable_looks((7, 12)) == ((7, 12), 0.025)
    assert reachable_looks((3, 4)) == ((), 0.05)


def test_all_pairs_wait_for_thirteen_blocks() -> None:
    def both(row: list[float]) -> set[tuple[str, int | None]]:
        told = all_pairs({("a", "b"): row, ("a", "c"): row})
        return {(one.answer, one.more_blocks) for one in told.values()}

    assert both([log(0.5)] * 6) == {("cannot tell", 7)}
    assert both([log(0.5) + 0.001 * (i % 3) for i in range(13)]) == {("slower", None)}


def test_a_single_pair_is_answered_as_a_cell_beside_its_reference() -> None:
    row = [log(0.5) + 0.001 * (i % 3) for i in range(6)]
    assert all_pairs({("a", "b"): row})["a", "b"] == compare({"b": row})["b"]


def test_the_pilot_block_names_the_leader() -> None:
    assert pilot_leader({"a": 1.0, "b": 3.0, "c": None}) == "b"
    assert pilot_leader({"a": None}) is None


def test_more_blocks_says_nothing_where_hundreds_would_be_needed() -> None:
    told = compare({"wild": cell(0.03, tuple(100 * value for value in NOISE))})["wild"]
    assert told.more_blocks is None
    assert "more than 200 blocks would be needed" in told.why


@pytest.mark.parametrize("freedom", [1, 2, 3, 5, 10, 40])
@pytest.mark.parametrize("alpha", [0.2, 0.05, 0.0026, 1e-4])
def test_students_t_agrees_with_scipy(alpha: float, freedom: int) -> None:
    assert critical_t(alpha, freedom) == pytest.approx(student.isf(alpha / 2, freedom), rel=1e-4)


def test_two_runs_of_four_blocks_can_tell_and_of_three_cannot() -> None:
    quiet = [0.0, 0.001, -0.001, 0.0005]
    four = changes({"a": quiet}, {"a": [value - 0.1 for value in quiet]})["a"]
    three = changes({"a": quiet[:3]}, {"a": [value - 0.1 for value in quiet[:3]]})["a"]
    assert four.answer == "slower"
    assert three.answer == "cannot tell"


def test_a_run_without_trials_of_a_cell_cannot_tell() -> None:
    told = changes({"a": [None, 0.1]}, {"a": [0.1, 0.2]})["a"]
    assert told.answer == "cannot tell"
    assert "fewer than 3" in told.why


@pytest.mark.slow
def test_unchanged_runs_are_rarely_news() -> None:
    chance = np.random.default_rng(5)
    studies, wrong, held = 150, 0, 0
    for _ in range(studies):
        tables = []
        for _run in range(2):
            common = 0.02 * chance.standard_normal(6)
            tables.append(0.01 * chance.standard_normal((8, 6)) + common)
        before, after = ({str(i): list(row) for i, row in enumerate(table)} for table in tables)
        told = changes(before, after).values()
        wrong += any((one.p or 1) <= 0.05 for one in told)
        held += all((one.low or 2) <= 1 <= (one.high or 0) for one in told)
    assert wrong / studies <= 0.05 + 3 * monte_carlo_error(0.05, studies)
    assert held / studies >= 0.95 - 3 * monte_carlo_error(0.95, studies)


def test_too_few_blocks_for_a_share_of_the_error_leave_no_interval() -> None:
    told = compare({"cell": [0.3 + noise for noise in NOISE]}, alpha=0.01)["cell"]
    assert (told.low, told.high, told.answer) == (None, None, "cannot tell")
