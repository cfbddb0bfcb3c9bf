"""Drive the timed loop with a clock that only work advances."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Mapping
from typing import Any

import pytest

from harness.worker import loop
from harness.worker.job import Span
from tests.worker.paced import Log, Work


def ran(step_s: float, *, warmup: Span, until: Span, first_s: float | None = None) -> Log:
    log = Log()
    work = Work(log, step_s, first_s)
    loop.run(work, log, warmup=warmup, until=until, clock=log.clock)  # type: ignore[arg-type]
    return log


def test_windows_count_every_step_once() -> None:
    log = ran(0.001, warmup=Span(steps=20), until=Span(seconds=3))
    expected = 0
    for window in log.events("window"):
        assert window["first"] == expected
        expected += window["steps"]
    assert expected == log.happened.count("step")


def test_a_window_lasts_as_long_as_its_steps() -> None:
    log = ran(0.002, warmup=Span(steps=20), until=Span(seconds=3))
    for window in log.events("window"):
        assert window["end"] - window["start"] == window["steps"] * 2_000_000


def test_the_first_step_has_a_window_of_its_own() -> None:
    log = ran(0.001, first_s=40.0, warmup=Span(steps=20), until=Span(seconds=1))
    first = log.windows("warm-up")[0]
    assert (first["first"], first["steps"]) == (0, 1)
    assert first["end"] - first["start"] == 40_000_000_000


def test_warm_up_takes_the_steps_it_is_given() -> None:
    log = ran(0.001, warmup=Span(steps=37), until=Span(seconds=1))
    assert sum(window["steps"] for window in log.windows("warm-up")) == 37


def test_seconds_of_warm_up_count_from_the_end_of_the_first_step() -> None:
    log = ran(0.01, first_s=60.0, warmup=Span(seconds=1), until=Span(seconds=1))
    later = log.windows("warm-up")[1:]
    assert sum(window["end"] - window["start"] for window in later) == 1_000_000_000


def test_without_warm_up_three_steps_still_choose_the_window() -> None:
    log = ran(0.001, first_s=9.0, warmup=Span(steps=0), until=Span(seconds=60))
    assert sum(window["steps"] for window in log.windows("warm-up")) == 3
    assert {window["steps"] for window in log.windows("measure")} == {50}


def test_windows_grow_at_most_twofold_while_warming_up() -> None:
    log = ran(1e-5, warmup=Span(seconds=0.2), until=Span(seconds=0.4))
    steps = [window["steps"] for window in log.windows("warm-up")]
    assert all(after <= 2 * before for before, after in itertools.pairwise(steps))
    assert steps[-1] == 1_000


def test_a_late_compilation_in_warm_up_does_not_choose_the_window() -> None:
    log = Log()
    work = Work(log, 0.001, first_s=30.0)

    def step() -> None:
        Work.step(work)
        if work.steps == 8:
            work.queued.append(20.0)

    work.step = step  # type: ignore[method-assign]
    loop.run(work, log, warmup=Span(steps=40), until=Span(seconds=60), clock=log.clock)  # type: ignore[arg-type]
    assert {window["steps"] for window in log.windows("measure")} == {50}


@pytest.mark.parametrize(
    ("step_s", "until", "steps"),
    [
        (0.006, Span(seconds=60), 1),
        (2.0, Span(seconds=60), 1),
        (0.005, Span(seconds=60), 10),
        (0.001, Span(seconds=60), 50),
        (0.001, Span(seconds=0.4), 10),
        (0.001, Span(steps=10_000), 50),
        (0.001, Span(steps=400), 10),
        (0.001, Span(steps=5), 1),
        (0.0, Span(seconds=60), 50_000_000),
    ],
)
def test_long_steps_stand_alone_and_short_ones_share_a_window(
    step_s: float, until: Span, steps: int
) -> None:
    assert loop.steps_per_window(step_s, until) == steps


def test_measuring_ends_with_the_window_in_which_time_is_up() -> None:
    log = ran(0.07, warmup=Span(steps=5), until=Span(seconds=1))
    assert len(log.windows("measure")) == 15


def test_measuring_takes_exactly_the_steps_it_is_given() -> None:
    log = ran(0.001, warmup=Span(steps=30), until=Span(steps=4_020))
    steps = [window["steps"] for window in log.windows("measure")]
    assert sum(steps) == 4_020
    assert set(steps[:-1]) == {50}
    assert steps[-1] == 20


def test_nothing_but_work_happens_between_the_two_clock_reads() -> None:
    log = ran(0.001, warmup=Span(steps=30), until=Span(seconds=2))
    happened = log.happened
    for at, what in enumerate(happened):
        if what == "step":
            assert happened[at - 1] in ("clock", "step")
            assert happened[at + 1] in ("step", "sync")
        if what == "sync":
            assert happened[at + 1] == "clock"


def test_the_collector_runs_between_windows_only() -> None:
    log = Log()
    work = Work(log, 0.001)
    plain_step = work.step

    def littering_step() -> None:
        plain_step()
        for _ in range(100):
            circle: list[Any] = []
            circle.append(circle)

    def watch(phase: str, info: Mapping[str, int]) -> None:
        log.happened.append("collect")

    work.step = littering_step  # type: ignore[method-assign]
    gc.callbacks.append(watch)
    try:
        loop.run(work, log, warmup=Span(steps=30), until=Span(seconds=2), clock=log.clock)  # type: ignore[arg-type]
    finally:
        gc.callbacks.remove(watch)
    neighbours = [
        {log.happened[at - 1], log.happened[at + 1]}
        for at, what in enumerate(log.happened[:-1])
        if what == "collect"
    ]
    assert neighbours
    assert not any("step" in pair or "sync" in pair for pair in neighbours)


def test_the_collector_is_left_as_it_was_found() -> None:
    ran(0.01, warmup=Span(steps=3), until=Span(steps=3))
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_values_belong_to_the_last_step_of_their_window() -> None:
    log = ran(0.01, warmup=Span(steps=3), until=Span(steps=4))
    assert [event["step"] for event in log.events("values")] == [0, 1, 2, 3, 4, 5, 6]
    assert log.events("values")[3]["values"] == {"loss": 0.25}


def test_events_reach_the_file_about_twice_a_second() -> None:
    log = ran(0.01, warmup=Span(steps=3), until=Span(seconds=10))
    assert 19 <= log.happened.count("flush") <= 24


def test_a_long_window_is_told_as_soon_as_it_ends() -> None:
    log = ran(3.0, warmup=Span(steps=3), until=Span(steps=4))
    told = [what for what in log.happened if what in ("sync", "flush")]
    assert told == ["flush", *["sync", "flush"] * 3, "flush", *["sync", "flush"] * 4]


def test_phases_are_told_before_their_windows() -> None:
    log = ran(0.01, warmup=Span(steps=3), until=Span(steps=3))
    order = [
        event.get("name") or event["phase"] for event in log.said if event["event"] != "values"
    ]
    assert order == ["warm-up"] * 4 + ["measure"] * 4


def test_the_device_tells_its_own_step_times_where_it_can() -> None:
    log = Log()
    work = Work(log, 0.01)
    work.device_steps = lambda: [0.009]  # type: ignore[attr-defined]
    loop.run(work, log, warmup=Span(steps=3), until=Span(steps=2), clock=log.clock)  # type: ignore[arg-type]
    told = log.events("device-steps")
    assert [event["last"] for event in told] == [0, 1, 2, 3, 4]
    assert told[0]["seconds"] == [0.009]


def test_windows_hold_as_many_steps_as_the_cells_first_trial_chose() -> None:
    log = Log()
    spans = {"warmup": Span(steps=40), "until": Span(seconds=2)}
    work = Work(log, 0.001)
    loop.run(work, log, **spans, clock=log.clock, window_steps=37)  # type: ignore[arg-type]
    assert {window["steps"] for window in log.windows("measure")} == {37}
