"""Hold windows that come from another program's clock to their rules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.worker import external_loop, place
from harness.worker.events import Events
from harness.worker.external_loop import Clocks, EndedEarly, Mark, StrangeClock
from harness.worker.job import Span

SECOND = 10**9
STARTED = Clocks(wall_ns=5_000 * SECOND, mono_ns=70 * SECOND)
NOW = Clocks(wall_ns=6_000 * SECOND, mono_ns=1_070 * SECOND)


class Program:
    """A program whose clock is the wall's."""

    def __init__(self, *marks: tuple[int, float]) -> None:
        self._marks = [
            Mark(steps, STARTED.wall_ns + round(s * SECOND), {"loss": float(steps)})
            for steps, s in marks
        ]
        self.is_stopped = False

    def marks(self, until: Span) -> Iterator[Mark]:
        try:
            yield from self._marks
        finally:
            self.is_stopped = True


def run(folder: Path, program: Program, warmup: Span, until: Span) -> list[dict[str, Any]]:
    events = Events(str(folder / "events"), place.find({}))
    readings = iter([STARTED])
    try:
        external_loop.run(
            program.marks,
            events,
            warmup=warmup,
            until=until,
            clocks=lambda: next(readings, NOW),
        )
    finally:
        events.close()
    lines = (folder / "events").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def windows(events: list[dict[str, Any]], phase: str) -> list[dict[str, Any]]:
    return [e for e in events if e["event"] == "window" and e["phase"] == phase]


def test_times_become_our_clock_s_and_say_where_they_are_from(tmp_path: Path) -> None:
    program = Program((0, 1), (1, 3), (2, 4), (3, 5), (4, 6), (5, 8))
    events = run(tmp_path, program, Span(steps=1), Span(steps=2))
    first, *_ = windows(events, "warm-up")
    assert (first["first"], first["steps"]) == (0, 1)
    assert (first["start"], first["end"]) == (71 * SECOND, 73 * SECOND)
    assert {e["clock"] for e in events if e["event"] == "window"} == {"external"}
    measured = windows(events, "measure")
    assert [(w["first"], w["steps"]) for w in measured] == [(3, 1), (4, 1)]
    assert [e["values"]["loss"] for e in events if e["event"] == "values"] == [1, 2, 3, 4, 5]
    assert program.is_stopped


def test_the_warm_up_s_seconds_count_from_the_first_step_s_end(tmp_path: Path) -> None:
    marks = [(0, 0.0), (1, 30.0), *((n, 30.0 + n) for n in range(2, 12))]
    events = run(tmp_path, Program(*marks), Span(seconds=4), Span(seconds=2))
    assert windows(events, "warm-up")[-1]["end"] == (70 + 34) * SECOND
    assert [w["end"] for w in windows(events, "measure")] == [105 * SECOND, 106 * SECOND]


def test_windows_of_several_steps_count_them(tmp_path: Path) -> None:
    marks = [(0, 0.0), (1, 1.0), *((1 + 10 * n, 1.0 + n) for n in range(1, 9))]
    events = run(tmp_path, Program(*marks), Span(steps=1), Span(steps=25))
    assert [w["steps"] for w in windows(events, "measure")] == [10, 10, 10]


def test_a_program_that_ends_before_it_was_told_to_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(EndedEarly, match="after 2 steps"):
        run(tmp_path, Program((0, 0), (1, 1), (2, 2)), Span(steps=1), Span(steps=5))


@pytest.mark.parametrize(("off_s", "word"), [(-3600, "behind"), (7200, "ahead")])
def test_a_clock_of_another_time_zone_is_a_fault(tmp_path: Path, off_s: int, word: str) -> None:
    with pytest.raises(StrangeClock, match=word):
        run(tmp_path, Program((0, off_s), (1, off_s + 1)), Span(steps=1), Span(steps=5))
