"""Runs that were recorded stay readable: their formats are read for ever.

Each folder of ``recorded/`` is a run directory as a session left it, without its payload and page.
None is ever written anew: a change of format brings a further one, and its history is told in
docs/run-directory.md.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.analysis.analyse import analyse
from harness.run import queue
from harness.run.due import read_due
from harness.run.setup import read_plan
from harness.store.dataset import Dataset
from harness.store.events.running_trial import label, latest_trial, read_trial_progress
from harness.store.layout import RunPaths
from harness.store.run_directory import identity, open_run, read_log
from reports.page.files import write_page

RECORDED = Path(__file__).parent / "recorded"
NAMES = sorted(one.name for one in RECORDED.iterdir())
TRIALS = {"measured": 4, "simulated": 2}


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
    assert all(cell.rate is not None for cell in results.cells)
    written = write_page([paths.root], paths.report)
    assert written.results.warnings == results.warnings
    assert json.loads(paths.results.read_text())["runs"][0]["title"] == results.title


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
