"""Runs that were recorded stay readable: their formats are read for ever.

Each folder of ``recorded/`` is a run directory as a session left it, without its payload and page.
None is ever written anew: a change of format brings a further one, and its history is told in
docs/run-directory.md.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from harness.analysis.analyse import analyse
from harness.analysis.context.absolute_paths import without_place
from harness.run.setup import read_plan
from harness.run.unattended import queue
from harness.store.dataset import Dataset
from harness.store.events.known_events import fault_of
from harness.store.events.running_trial import label, latest_trial, read_trial_progress
from harness.store.layout import RunPaths, TrialPaths
from harness.store.outcome import Ended, Outcome, read_outcome
from harness.store.run_directory.due import read_due
from harness.store.run_directory.identity import identity
from harness.store.run_directory.opening import open_run
from harness.store.run_directory.session_log import read_log
from harness.worker import events
from reports.page.files import write_page
from tests.cli.command import bakeoff

RECORDED = Path(__file__).parent / "recorded"
NAMES = sorted(one.name for one in RECORDED.iterdir())
TRIALS = {
    "attributed": 12,
    "ceilings": 4,
    "ended": 2,
    "measured": 4,
    "proved": 1,
    "read": 1,
    "saved": 1,
    "simulated": 2,
    "turned": 4,
}
WITHOUT_RATE = {"ended": 2}
"""Cells: one failed, and the loss of the other stands still."""


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[[str], RunPaths]:
    """Give a copy of a recorded run, beside which a page may be written."""

    def copied(name: str) -> RunPaths:
        shutil.copytree(RECORDED / name, tmp_path / name)
        return RunPaths(tmp_path / name)

    return copied


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_run_is_read_whole(recorded: Callable[[str], RunPaths], name: str) -> None:
    paths = recorded(name)
    dataset = Dataset([open_run(paths.root).root])
    assert dataset.warnings == ()
    assert len(dataset.trials) == TRIALS[name]
    results = analyse(dataset)
    assert sum(cell.rate is None for cell in results.cells) == WITHOUT_RATE.get(name, 0)
    written = write_page([paths.root], paths.report)
    assert written.results.warnings == results.warnings
    title = json.loads(paths.results.read_text())["runs"][0]["title"]
    assert title == without_place(results.title)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_session_reads_again_of_a_recorded_run_is_there(
    recorded: Callable[[str], RunPaths], name: str
) -> None:
    paths = recorded(name)
    plan = read_plan(paths)
    known = identity(paths)
    assert {cell.key for cell in plan.cells} == set(known.first) == set(known.accepted)
    count = read_due(paths).count()
    assert (count.done, count.left) == (TRIALS[name], 0)
    log = read_log(paths)
    assert log.damaged == ()
    assert {"started", "trial", "finished"} <= {entry.what for entry in log.entries}
    trial = latest_trial(paths)
    assert trial is not None
    assert label(paths, trial) in {cell.label for cell in plan.cells}
    assert read_trial_progress(trial).phase is not None


def _events() -> list[dict[str, Any]]:
    files = RECORDED.glob("*/cells/*/*/events.*.jsonl")
    return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]


def test_each_line_of_a_recorded_rank_says_what_its_kind_must() -> None:
    for file in RECORDED.glob("*/cells/*/*/events.*.jsonl"):
        for line in file.read_bytes().splitlines():
            assert fault_of(line) is None, (file, line)


def test_every_kind_of_event_that_a_worker_tells_of_stands_in_a_recorded_run() -> None:
    """Whoever adds a kind records a run that has it: its form is then read for ever."""
    known = set(re.findall(r"^    ([a-z-]+) {2,}[a-z]", events.__doc__ or "", re.MULTILINE))
    assert {"window", "turn", "restored", "device-steps", "failed"} <= known
    assert known <= {one["event"] for one in _events()}


def test_every_member_of_an_outcome_stands_in_a_recorded_run() -> None:
    """Filled: neither left empty nor absent."""
    held = [
        read_outcome(TrialPaths(file.parent)) for file in RECORDED.glob("*/cells/*/*/outcome.json")
    ]
    filled = {
        name for one in held for name, value in vars(one).items() if value not in ("", None, ())
    }
    assert filled == {one.name for one in fields(Outcome)}
    assert {one.ended for one in held} >= {Ended.OK, Ended.FAILED}
    assert any(one.turns and not one.turns.alone and one.turns.rounds for one in held)


def test_the_numbers_of_recorded_kinds_reach_a_question_and_a_person(
    recorded: Callable[[str], RunPaths],
) -> None:
    shown = {
        name: bakeoff("show", str(paths.root), cwd=paths.root.parent)
        for name, paths in ((one, recorded(one)) for one in NAMES)
    }
    assert all(one.returncode == 0 for one in shown.values()), shown
    assert "Cells took turns" in shown["turned"].stdout
    assert "Checkpoints:" in shown["saved"].stdout
    assert "fails on purpose" in shown["ended"].stdout
    asked = Dataset([RECORDED / "ended"]).sql(
        "SELECT count(*) FROM trials WHERE outcome = 'failed'"
    )
    assert asked.rows[0][0] == 1


def test_every_table_of_a_recorded_run_has_rows(recorded: Callable[[str], RunPaths]) -> None:
    dataset = Dataset([recorded("measured").root])
    rows = {
        table: dataset.sql(f"SELECT count(*) FROM {table}").rows[0][0]
        for table in ("cells", "trials", "ranks", "windows", "units", "phases", "facts", "samples")
    }
    assert all(rows.values()), rows


def test_the_jobs_of_a_recorded_run_are_read(recorded: Callable[[str], RunPaths]) -> None:
    paths = recorded("measured")
    run = json.loads(paths.run.read_text())
    paths.run.write_text(json.dumps({**run, "directory": paths.root.stat().st_ino}))
    assert [one.job for one in queue.jobs(paths)] == ["4711"]
