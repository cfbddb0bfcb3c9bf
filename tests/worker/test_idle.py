"""What a device waited for while nothing ran on it."""

from __future__ import annotations

from harness.worker.attribution.account import Operation, Ran, attribution
from harness.worker.attribution.idle import (
    AFTER_THE_LAST,
    LAUNCH_UNKNOWN,
    NOT_BEGUN,
    NOT_LAUNCHED,
    Work,
    idle,
)
from harness.worker.attribution.marks import GAPS, Place

STEP = ((0, 100),)


def stretches(*works: Work, steps: tuple[tuple[int, int], ...] = STEP) -> list[tuple[str, int]]:
    found = list(idle(steps, works))
    assert all(one.place == Place("", GAPS) for one in found)
    return [(one.operation.name, one.end - one.start) for one in found]


def test_until_a_launch_returns_the_device_waits_for_the_host_and_then_for_itself() -> None:
    assert stretches(Work(30, 90, 20)) == [
        (NOT_LAUNCHED, 20),
        (NOT_BEGUN, 10),
        (AFTER_THE_LAST, 10),
    ]


def test_a_kernel_that_begins_before_its_launch_returned_waited_for_the_host_alone() -> None:
    assert stretches(Work(30, 100, 35)) == [(NOT_LAUNCHED, 30)]


def test_what_was_launched_while_another_ran_makes_the_device_wait_for_no_host() -> None:
    assert stretches(Work(0, 50, 0), Work(60, 100, 40)) == [(NOT_BEGUN, 10)]


def test_no_moment_is_idle_while_anything_runs_on_any_stream() -> None:
    assert stretches(Work(0, 80, 0), Work(10, 20, 5), Work(70, 100, 5)) == []


def test_a_launch_that_was_not_traced_is_named() -> None:
    assert stretches(Work(40, 100, None)) == [(LAUNCH_UNKNOWN, 40)]


def test_each_step_has_its_own() -> None:
    steps = ((0, 50), (100, 150))
    found = stretches(Work(0, 50, 0), Work(120, 150, 115), steps=steps)
    assert found == [(NOT_LAUNCHED, 15), (NOT_BEGUN, 5)]


def test_idle_stretches_are_the_operations_of_the_gaps_and_add_up_to_them() -> None:
    kernel = Ran(40, 90, 0, Place("conv1", "forward"), Operation("gemm", "", ""))
    found = attribution("a trace", STEP, [kernel, *idle(STEP, [Work(40, 90, 30)])], []).parts
    gaps = next(one for one in found if one.place == Place("", GAPS))
    assert gaps.shares == [0.5]
    shares = {one["name"]: one["share"] for one in gaps.operations}
    assert shares == {NOT_LAUNCHED: 0.6, NOT_BEGUN: 0.2, AFTER_THE_LAST: 0.2}
