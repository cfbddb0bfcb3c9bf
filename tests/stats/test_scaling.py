"""These tests hold speed-ups and predictions to data whose truth is known."""

from __future__ import annotations

import pytest

from harness.stats.growth.growth import MeasuredCount, check, fabric, grow
from harness.stats.scaling import speed_up
from tests.stats.prediction_truth import SHAPES, Shape, predictions


def test_a_speed_up_is_the_median_of_the_blocks_own_ratios() -> None:
    before = {block: 10.0 * block for block in range(1, 7)}  # the machine doubles and trebles …
    after = {block: 19.0 * block for block in range(1, 7)}  # … which its blocks have in common
    told = speed_up(before, after, baseline=1, devices=2)
    assert told is not None
    assert told.interval is not None
    assert (told.ratio, told.efficiency) == (pytest.approx(1.9), pytest.approx(0.95))
    assert told.interval.high - told.interval.low < 1e-9
    assert told.interval.level == pytest.approx(0.96875)


def test_without_common_blocks_a_speed_up_has_no_interval() -> None:
    told = speed_up({1: 10.0}, {2: 19.0}, baseline=1, devices=2)
    assert told is not None
    assert told.interval is None


def test_only_what_is_surely_above_100_per_cent_is_impossible() -> None:
    before = dict(enumerate([10.0] * 6))
    scattered = dict(enumerate([19.0, 20.5, 20.6, 20.7, 20.8, 21.0]))
    surely = dict(enumerate([20.5, 20.6, 20.6, 20.7, 20.8, 21.0]))
    told = [speed_up(before, after, baseline=1, devices=2) for after in (scattered, surely)]
    assert [one and one.is_impossible for one in told] == [False, True]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda one: one.name)
def test_an_interval_holds_the_truth_or_its_check_says_not_to_believe_it(shape: Shape) -> None:
    told = predictions(shape, 32, 30)
    assert told.misled <= 0.1
    assert told.covered >= 0.9 or told.disbelieved >= 0.9


def test_a_rate_of_all_devices_that_falls_fails_the_check() -> None:
    falls = next(one for one in SHAPES if "falls" in one.name)
    assert predictions(falls, 32, 30).disbelieved >= 0.9


def test_far_from_what_was_measured_nothing_is_predicted_unless_the_network_is_known() -> None:
    flat, swept = (next(one for one in SHAPES if one.name.startswith(n)) for n in ("flat", "swept"))
    assert predictions(flat, 256, 10).refused == 1
    assert predictions(swept, 256, 10).refused == 0


def test_amdahls_share_is_found_and_no_prediction_is_better_than_ideal() -> None:
    counts = [MeasuredCount(p, (0.05 + 0.95 / p,) * 2) for p in (1, 2, 4, 8)]
    told = grow(counts, strong=True)
    assert told is not None
    assert told.serial == pytest.approx(0.05)
    prediction = told.predict(16)
    assert prediction.seconds == pytest.approx(0.05 + 0.95 / 16)
    assert prediction.low is not None
    assert prediction.low >= 1 / 16
    assert told.predict(1024).seconds == pytest.approx(0.05 + 0.95 / 1024)
    assert told.predict(1024).low is None, "128 times the devices: the interval would say nothing"


def test_the_largest_count_exposes_a_network_that_the_smaller_ones_did_not_show() -> None:
    within = [MeasuredCount(p, (1.0, 1.01, 1.02)) for p in (1, 2, 4, 8)]
    congested = MeasuredCount(16, (3.0, 3.01, 3.02))
    told = check([*within, congested], strong=False)
    assert told is not None
    assert told.holds is False


def test_two_counts_predict_without_an_interval_and_one_predicts_nothing() -> None:
    told = grow([MeasuredCount(1, (1.0,)), MeasuredCount(2, (1.1,))], strong=False)
    assert told is not None
    assert told.predict(4).low is None
    assert grow([MeasuredCount(1, (1.0,))], strong=False) is None


def test_a_sweep_gives_the_time_of_a_message_and_of_a_byte() -> None:
    sweep = [
        (p, size, 2 * (p - 1) * 1e-5 + 2 * (p - 1) / p * size * 1e-9)
        for p in (2, 4)
        for size in (4.0, 1e3, 1e6, 1e8)
    ]
    told = fabric(sweep)
    assert told is not None
    assert (told.alpha_s, told.beta_s) == (pytest.approx(1e-5), pytest.approx(1e-9))
    assert fabric(sweep[:1]) is None
