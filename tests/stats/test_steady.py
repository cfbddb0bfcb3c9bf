"""These tests show what is found in window times whose truth is known."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.stats.windows.shape import FEWEST_WINDOWS
from harness.stats.windows.steady import begin, describe
from harness.verdicts.thresholds import THRESHOLDS, judge, worst
from tests.runs import Behaviour, step_times
from tests.stats.truth import verdicts

QUIET = Behaviour(windows=200, trial_noise=0)


def times(behaviour: Behaviour, seed: int = 1) -> np.ndarray:
    return np.array(step_times(behaviour, random.Random(seed)))


def verdict(behaviour: Behaviour, seed: int = 1) -> tuple[str, tuple[str, ...]]:
    windows = times(behaviour, seed)
    steady = begin(windows)
    findings = judge(steady, describe(windows[steady.start :]))
    return worst(findings), tuple(finding.evidence for finding in findings)


@pytest.mark.parametrize("seed", range(20))
def test_a_trial_that_is_steady_from_the_start_loses_nothing(seed: int) -> None:
    assert begin(times(QUIET, seed)).start == 0


@pytest.mark.parametrize("slow", [1, 5, 20, 60])
@pytest.mark.parametrize("factor", [1.1, 1.5, 10.0])
def test_a_warm_up_that_outlasts_the_fixed_rule_is_cut_off(slow: int, factor: float) -> None:
    found = begin(times(replace(QUIET, slow_windows=slow, slow_factor=factor)))
    assert abs(found.start - slow) <= 2
    assert "slower" in found.why


@pytest.mark.parametrize("seed", range(20))
def test_a_neighbour_that_comes_and_stays_makes_no_beginning_of_the_fast_part(seed: int) -> None:
    windows = times(QUIET, seed)
    windows[60:] *= 1.1
    found = begin(windows)
    assert found.start == 0
    assert worst(judge(found, describe(windows))) == "unsteady"


@pytest.mark.parametrize("seed", range(20))
def test_a_slow_stretch_that_comes_later_is_no_beginning(seed: int) -> None:
    windows = times(QUIET, seed)
    windows[30:70] *= 1.1
    assert begin(windows).start == 0


def test_a_warm_up_of_a_very_quiet_trial_is_cut_off() -> None:
    found = begin(times(replace(QUIET, window_noise=0.0004, slow_windows=20)))
    assert found.start == 20


def test_a_decaying_warm_up_is_cut_where_it_stops_mattering() -> None:
    windows = times(QUIET) * (1 + np.exp(-np.arange(200) / 10))
    assert 25 <= begin(windows).start <= 70


def test_single_hiccups_do_not_move_the_beginning() -> None:
    windows = times(QUIET)
    windows[7::20] *= 4
    assert begin(windows).start == 0


def test_a_trial_that_never_settles_says_so() -> None:
    found = begin(times(QUIET) * (1 + np.exp(-np.arange(200) / 80)))
    assert not found.settled
    assert "half-way" in found.why


def test_a_change_in_the_second_half_is_called_unsteady() -> None:
    assert verdict(replace(QUIET, slow_windows=150))[0] == "unsteady"


def test_few_windows_are_all_kept_and_marked() -> None:
    behaviour = replace(QUIET, windows=FEWEST_WINDOWS - 1)
    assert begin(times(behaviour)).start == 0
    assert verdict(behaviour)[0] == "noisy"


@given(st.floats(1e-6, 1e3))
def test_the_unit_of_time_does_not_matter(scale: float) -> None:
    windows = times(replace(QUIET, slow_windows=20))
    assert begin(windows * scale).start == begin(windows).start
    before, after = describe(windows), describe(windows * scale)
    assert after.spread == pytest.approx(before.spread)
    assert after.p99_s == pytest.approx(before.p99_s * scale)


@pytest.mark.parametrize("seed", range(30))
def test_a_quiet_trial_is_valid(seed: int) -> None:
    assert verdict(QUIET, seed) == ("valid", ())


def test_a_coarse_clock_is_no_fault() -> None:
    windows = np.full(100, 0.001)
    windows[::7] = 0.001001
    assert worst(judge(begin(windows), describe(windows))) == "valid"


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    ("behaviour", "word"),
    [
        (replace(QUIET, drift=0.15), "steps became"),
        (replace(QUIET, period=20, period_amplitude=0.1), "rose and fell"),
    ],
)
def test_an_unsteady_trial_is_called_so(behaviour: Behaviour, word: str, seed: int) -> None:
    found, evidence = verdict(behaviour, seed)
    assert found == "unsteady"
    assert any(word in line for line in evidence)


def test_two_clock_states_are_called_two_speeds() -> None:
    windows = times(QUIET)
    windows[np.random.default_rng(1).random(200) < 0.4] *= 1.08
    found = judge(begin(windows), describe(windows))
    assert any("two speeds" in finding.evidence for finding in found)


@pytest.mark.parametrize("seed", range(10))
def test_wandering_speed_is_called_unsteady(seed: int) -> None:
    chance = np.random.default_rng(seed)
    level = np.zeros(400)
    for index in range(1, 400):
        level[index] = 0.98 * level[index - 1] + 0.01 * chance.standard_normal()
    windows = 0.02 * np.exp(level)
    steady = begin(windows)
    assert worst(judge(steady, describe(windows[steady.start :]))) == "unsteady"


def test_slow_windows_make_a_trial_noisy() -> None:
    found, evidence = verdict(replace(QUIET, outlier_every=20, outlier_factor=5))
    assert found == "noisy"
    assert "of the time went into slow windows" in evidence[0]


def test_a_wide_spread_makes_a_trial_noisy() -> None:
    assert verdict(replace(QUIET, window_noise=0.2))[0] == "noisy"


@pytest.mark.parametrize(
    ("kind", "verdict", "least"),
    [
        ("quiet", "valid", 0.97),
        ("heavy tails", "valid", 0.97),
        ("drift of 10 %", "unsteady", 0.9),
        ("wandering by 5 %", "unsteady", 0.9),
        ("two clocks 8 % apart", "unsteady", 0.9),
        ("rhythm of 8 %", "unsteady", 0.9),
    ],
)
def test_verdicts_keep_their_rates(kind: str, verdict: str, least: float) -> None:
    assert verdicts(kind, 300)[verdict] >= least


def test_every_threshold_says_what_it_limits() -> None:
    assert all(limit.meaning and limit.value > 0 for limit in THRESHOLDS.values())


@pytest.mark.parametrize("alike", [0.5, 0.7, 0.9])
def test_speed_that_wanders_is_seldom_called_a_rhythm(alike: float) -> None:
    chance, rhythms = np.random.default_rng(8), 0
    for _ in range(200):
        course = np.zeros(300)
        for index in range(1, 300):
            step = 0.03 * (1 - alike**2) ** 0.5 * chance.standard_normal()
            course[index] = alike * course[index - 1] + step
        shape = describe(0.02 * np.exp(course + 0.01 * chance.standard_normal(300)))
        rhythms += shape.period is not None and shape.rhythm > THRESHOLDS["rhythm"].value
    assert rhythms / 200 <= 0.15


@pytest.mark.parametrize("gap", [0.05, 0.08, 0.2])
def test_a_clock_that_switches_inside_a_trial_is_called_unsteady(gap: float) -> None:
    chance, found = np.random.default_rng(9), 0
    for _ in range(200):
        switched = np.arange(300) >= chance.integers(30, 270)
        windows = 0.02 * np.exp(gap * switched + 0.01 * chance.standard_normal(300))
        steady = begin(windows)
        found += worst(judge(steady, describe(windows[steady.start :]))) == "unsteady"
    assert found / 200 >= 0.9
