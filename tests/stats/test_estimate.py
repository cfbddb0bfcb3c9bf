"""These tests state the laws of estimates, and prove their intervals by enumeration."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.stats.estimate import (
    coverage,
    median,
    median_interval,
    ordinal,
    trials_for,
)

rates = st.lists(st.floats(0.1, 1e6), min_size=2, max_size=25)


def test_six_trials_give_their_smallest_and_largest_with_96_9_per_cent() -> None:
    told = median_interval([5, 1, 4, 2, 6, 3])
    assert told is not None
    assert (told.low, told.high, told.level) == (1, 6, 0.96875)
    assert told.meaning == "smallest and largest of 6 trials"


def test_five_trials_say_that_they_promise_less_than_95_per_cent() -> None:
    told = median_interval([1, 2, 3, 4, 5])
    assert told is not None
    assert told.level == 0.9375


def test_one_trial_has_no_interval() -> None:
    assert median_interval([1.0]) is None


@pytest.mark.parametrize(("n", "rank"), [(8, 1), (9, 2), (12, 3), (20, 6)])
def test_more_trials_allow_inner_trials_as_ends(n: int, rank: int) -> None:
    told = median_interval(list(range(n)))
    assert told is not None
    assert told.rank == rank
    assert (told.low, told.high) == (rank - 1, n - rank)


@pytest.mark.parametrize("n", range(2, 12))
def test_the_stated_confidence_is_exact_by_enumeration(n: int) -> None:
    # each trial is above or below the true median with chance 1/2: all 2^n cases
    told = median_interval(list(range(n)))
    assert told is not None
    held = sum(told.rank <= sum(below) <= n - told.rank for below in product((0, 1), repeat=n))
    assert told.level == held / 2**n


def test_trials_for_is_the_fewest_that_reach_a_level() -> None:
    assert trials_for(0.95) == 6
    assert coverage(trials_for(0.99), 1) >= 0.99 > coverage(trials_for(0.99) - 1, 1)


@given(rates, st.randoms())
def test_the_order_of_trials_does_not_matter(values: list[float], chance: object) -> None:
    shuffled = list(values)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert median(shuffled) == median(values)
    assert median_interval(shuffled) == median_interval(values)


@given(rates, st.sampled_from((0.25, 2.0, 1024.0)))
def test_estimates_follow_the_unit(values: list[float], factor: float) -> None:
    scaled = [value * factor for value in values]
    before, after = median_interval(values), median_interval(scaled)
    assert before is not None
    assert after is not None
    assert median(scaled) == median(values) * factor
    assert (after.low, after.high) == (before.low * factor, before.high * factor)


@given(rates)
def test_the_median_lies_in_its_interval(values: list[float]) -> None:
    told = median_interval(values)
    assert told is not None
    assert told.low <= median(values) <= told.high


@pytest.mark.parametrize(
    ("number", "word"),
    [(2, "second"), (4, "4th"), (12, "12th"), (21, "21st"), (22, "22nd"), (103, "103rd")],
)
def test_ranks_are_named_as_people_say_them(number: int, word: str) -> None:
    assert ordinal(number) == word
