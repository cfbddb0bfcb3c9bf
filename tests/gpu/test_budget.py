"""A GPU day ends after so many minutes, over all calls, and says how it goes on."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.gpu import results
from tests.gpu.answer import Answer, Unfinished
from tests.gpu.day import Day
from tests.gpu.steps import jobs
from tests.gpu.table import Step

ROOT = Path(__file__).parents[2]


def unfinished(_: Day) -> Answer:
    raise Unfinished("it takes longer")


def test_every_try_of_a_step_counts(tmp_path: Path) -> None:
    day = Day(sys.executable, tmp_path)
    (day.work / "steps").mkdir(parents=True)
    steps = [Step("slow", "", unfinished), Step("quick", "", lambda _: Answer(()))]
    assert results.spent_s(day, steps) == 0
    for step in steps:
        results.carry_out(day, step)
    kept = results.read(day, steps[0])
    assert kept is not None
    results.write_json(day.work / "steps" / "slow.json", {**kept, "seconds": 400.0})
    results.carry_out(day, steps[0])
    assert 400 <= results.spent_s(day, steps) < 460


def test_what_does_not_fit_is_not_begun_and_a_command_is_ended_with_the_day(tmp_path: Path) -> None:
    day = Day(sys.executable, tmp_path)
    (day.work / "steps").mkdir(parents=True)
    over = replace(day, ends_s=time.monotonic() - 1)
    never = Step("late", "", lambda _: Answer(()))
    assert results.carry_out(over, never)["state"] == results.UNFINISHED
    assert results.read(day, never) is None
    endless = ("-c", "import signal; signal.pause()")
    soon = replace(day, ends_s=time.monotonic() + 0.2)
    step = Step("endless", "", lambda one: Answer((one.host_python(*endless, limit_s=300).out,)))
    assert results.carry_out(soon, step)["state"] == results.UNFINISHED


def test_a_day_that_is_over_says_how_it_goes_on(tmp_path: Path) -> None:
    words = ("--python", sys.executable, "--out", str(tmp_path / "day"), "--only", "doctor")
    told = subprocess.run(
        [sys.executable, "-m", "tests.gpu", *words, "--minutes", "0.000001"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 1
    assert "doctor: not begun, as the day is over" in told.stderr
    assert "minutes are over: MINUTES=" in told.stderr


def test_a_cell_that_was_worked_is_not_worked_again(tmp_path: Path) -> None:
    day, cell = Day(sys.executable, tmp_path), {"key": "k"}
    said = jobs.folder_of(day, cell, "windows") / "events.0.jsonl"
    assert jobs.events_of(day, cell, "windows") is None
    said.write_text('{"event":"window"}\n{"event":"fini')
    assert jobs.events_of(day, cell, "windows") is None
    said.write_text('{"event":"window"}\n{"event":"finished"}\n')
    assert jobs.events_of(day, cell, "windows") == [{"event": "window"}, {"event": "finished"}]


def test_a_cell_for_which_no_time_is_left_is_for_the_next_call(tmp_path: Path) -> None:
    day = Day(sys.executable, tmp_path)
    with pytest.raises(Unfinished, match="no time was left"):
        jobs.work(day, {"key": "k"}, "windows", 0.0, {})
