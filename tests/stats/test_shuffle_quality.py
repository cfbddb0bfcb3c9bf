"""Hold the question of shuffling to a few seeds: harm is seen, and none is invented."""

from __future__ import annotations

import math

import pytest

from tests.bench.shuffle_quality import MARGIN, answered, compared

pytestmark = pytest.mark.io


def test_losses_are_equal_only_where_the_whole_interval_is_within_the_margin() -> None:
    assert answered([1.001, 0.999, 1.002, 0.998]).is_equivalent
    assert not answered([1.04, 1.06, 1.03, 1.05]).is_equivalent  # so small, and yet not proved
    assert not answered([1.3, 0.8, 1.1, 0.9]).is_equivalent  # too few to say
    told = answered([1.02, 1.02, 1.02 * (1 + 1e-9)])
    assert math.log(told.ratio) < MARGIN


def test_shuffling_files_harms_independent_samples_no_more_than_stated_and_like_ones_more() -> None:
    assert compared(5, alike=False).is_equivalent
    assert not compared(5, alike=True).is_equivalent
