"""Hold the arithmetic of clocks to clocks whose truth is known."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from harness.stats.clock import WANDER, RoundTrip, fit, quickest, too_early_ns

WAYS = some.integers(1_000, 50_000_000)


def exchange(t1: int, lead: float, there: int, work: int, back: int) -> RoundTrip:
    return RoundTrip(
        t1, round(t1 + there + lead), round(t1 + there + work + lead), t1 + there + work + back
    )


@settings(max_examples=100, deadline=None)
@given(some.integers(-(10**12), 10**12), WAYS, some.integers(0, 10**6), WAYS)
def test_the_true_offset_is_within_half_the_round_trip(
    lead: int, there: int, work: int, back: int
) -> None:
    one = exchange(10**9, lead, there, work, back)
    assert abs(one.offset_ns - lead) <= one.bound_ns


@settings(max_examples=50, deadline=None)
@given(
    some.integers(-(10**12), 10**12),
    some.floats(-40e-6, 40e-6),
    some.integers(1, 6),
    some.integers(0, 1 << 30),
)
def test_a_fitted_line_holds_the_truth_within_its_bound(
    lead: int, drift: float, bursts: int, seed: int
) -> None:
    draw = random.Random(seed)
    taken = []
    for burst in range(bursts):
        begin = burst * 10**10
        times = [begin + n * 10**6 for n in range(8)]
        taken.append(
            [
                exchange(
                    t,
                    lead + drift * t,
                    draw.randrange(20_000, 3_000_000),
                    5_000,
                    draw.randrange(20_000, 200_000),
                )
                for t in times
            ]
        )
    line = fit(taken)
    for t in range(int(line.first_ns), int(line.last_ns) + 1, 10**9):
        # the true clock moved by less than a nanosecond while a question was on its way
        assert abs(line.ahead_ns(t) - (lead + drift * t)) <= line.bound_at_ns(t) + 1000


def test_the_quickest_exchange_of_a_burst_is_believed() -> None:
    slow, quick = exchange(0, 500, 10**6, 10, 10), exchange(0, 500, 1000, 10, 1000)
    assert quickest([slow, quick]) is quick


def test_far_from_the_exchanges_less_is_promised() -> None:
    line = fit([[exchange(0, 500, 1000, 10, 1000)]])
    assert line.drift == 0
    assert line.bound_at_ns(line.last_ns + 1e9) == pytest.approx(line.bound_ns + WANDER * 1e9)


def test_moments_there_become_moments_here() -> None:
    line = fit([[exchange(t, 500 + 1e-5 * t, 100, 10, 100)] for t in (0, 10**9, 2 * 10**9)])
    here = 1.5e9
    assert line.here_ns(here + line.ahead_ns(here)) == pytest.approx(here, abs=1)


def test_barriers_convict_clocks_that_are_off() -> None:
    ends = {0: [10.0, 20.0, 30.0], 1: [12.0, 22.0, 31.0]}
    begins = {0: [1.0, 12.5, 22.5], 1: [1.0, 12.6, 22.4]}
    assert too_early_ns(begins, ends) == 0.0
    late = {1: [end + 5 for end in ends[1]]}
    assert too_early_ns({**begins, 1: [b + 5 for b in begins[1]]}, {**ends, **late}) == 4.5


def test_a_slow_burst_beside_a_quick_one_widens_nothing() -> None:
    quick, slow = exchange(0, 500, 1000, 10, 1000), exchange(10**6, 500, 10**7, 10, 10)
    line = fit([[quick], [slow]])
    assert line.bound_ns == quick.bound_ns
    assert line.drift == 0
    assert abs(line.ahead_ns(10**6) - 500) <= line.bound_at_ns(10**6)


def test_a_slow_burst_long_after_is_better_than_wandering() -> None:
    quick, slow = exchange(0, 500, 1000, 10, 1000), exchange(10**12, 500, 10**7, 10, 10)
    line = fit([[quick], [slow]])
    assert line.last_ns == slow.middle_ns
