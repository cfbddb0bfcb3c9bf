"""Hold the verdict on an input ladder to who was busy, who was slow, who neither."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.analysis.files.bottleneck import BYTES, LOADER, MODEL, PARSED, LadderStep, bottleneck
from harness.analysis.files.goodput import ComputeOnly

QUIET, SLOWED = ComputeOnly(500.0), ComputeOnly(10.0, "other processes used 0.90 of the 2 cores")


def steps(
    rates: dict[int, float], busy: float | None = 0.9, **of_top: Any
) -> dict[int, LadderStep]:
    """Give rungs that keep so much of the processors busy; the top one has what is said of it."""
    made = {rung: LadderStep(rate, busy) for rung, rate in rates.items()}
    return {**made, max(made): replace(made[max(made)], **of_top)}


@pytest.mark.parametrize(
    ("rates", "compute", "is_cold", "said"),
    [
        ({BYTES: 100.0, PARSED: 98.0}, None, True, "storage-bound"),
        ({BYTES: 100.0, PARSED: 60.0}, None, True, "CPU-bound"),
        ({BYTES: 100.0, PARSED: 98.0}, None, False, "CPU-bound"),
        ({BYTES: 100.0, PARSED: 60.0}, None, False, "CPU-bound"),
        ({BYTES: 100.0, LOADER: 80.0, MODEL: 9.8}, ComputeOnly(10.0), True, "compute-bound"),
        ({BYTES: 100.0, LOADER: 80.0, MODEL: 9.8}, SLOWED, True, ""),
        ({BYTES: 100.0, LOADER: 80.0, MODEL: 39.0}, ComputeOnly(10.0), True, ""),
        ({BYTES: 100.0, LOADER: 98.0, MODEL: 97.0}, QUIET, True, "storage-bound"),
        ({BYTES: 100.0, LOADER: 50.0, MODEL: 48.0}, QUIET, True, "CPU-bound"),
        ({LOADER: 50.0, MODEL: 20.0}, ComputeOnly(60.0), True, "CPU-bound"),
        ({MODEL: 20.0}, ComputeOnly(60.0), True, ""),
        ({BYTES: 13.0, PARSED: 61.0}, None, False, ""),
        ({BYTES: 100.0}, None, True, ""),
    ],
)
def test_the_bottleneck_is_the_rung_that_loses_most(
    rates: dict[int, float], compute: ComputeOnly | None, is_cold: bool, said: str
) -> None:
    assert bottleneck(steps(rates), compute, is_cold=is_cold) == said


@pytest.mark.parametrize(
    ("busy", "of_top", "said"),
    [
        (0.2, {}, "harness-bound"),
        (0.2, {"disturbed": True}, ""),
        (0.2, {"bytes_alike": 62.0}, "storage-bound"),
        (0.6, {}, ""),
        (0.8, {"disturbed": True}, "CPU-bound"),
        (None, {}, ""),
    ],
)
def test_a_slow_loader_is_judged_by_who_was_busy(
    busy: float | None, of_top: dict[str, Any], said: str
) -> None:
    slow = steps({BYTES: 100.0, LOADER: 60.0}, busy, **of_top)
    assert bottleneck(slow, None, is_cold=True) == said


@pytest.mark.parametrize(("busy", "said"), [(0.2, ""), (0.6, ""), (0.8, "CPU-bound")])
def test_a_loader_that_loses_nothing_is_not_to_blame(busy: float, said: str) -> None:
    """Its files are in memory, and it is as fast as bytes alone are."""
    as_fast = steps({BYTES: 100.0, LOADER: 98.0}, busy)
    assert bottleneck(as_fast, None, is_cold=False) == said


def test_input_and_model_that_take_turns_are_bound_by_the_harness() -> None:
    turns = {LOADER: 50.0, MODEL: 27.0}
    assert bottleneck(steps(turns, 0.4), ComputeOnly(60.0), is_cold=True) == "harness-bound"
    assert bottleneck(steps(turns, 0.4), None, is_cold=True) == ""
