"""These tests hold what a session says whose user may start hardly any process or thread."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.store.layout import RunPaths, TrialName
from harness.store.outcome import Outcome, read_outcome
from tests import needs

STUDY = """title = "Null"
[matrix]
workload = "nothing"
framework = "null"
[measure]
trials = 1
warmup = "3 steps"
until = "20 ms"
"""
# Another user, whose processes are counted, but who may read what this one may.
ANOTHER = (
    *("--reuid=54321", "--regid=54321", "--clear-groups"),
    *(f"--{kind}=-all,+dac_override,+dac_read_search" for kind in ("inh-caps", "ambient-caps")),
)


def run_limited(folder: Path, processes: int) -> tuple[str, Outcome | None]:
    """Run a study with at most so many processes; give what was said and how its trial ended."""
    if os.geteuid() != 0:
        pytest.skip("only root may start processes of another user")
    (folder / "null.toml").write_text(STUDY)
    setpriv = needs.program("setpriv", package="util-linux")
    limited = (setpriv, *ANOTHER, "prlimit", f"--nproc={processes}")
    command = (sys.executable, "-m", "harness.cli", "run", "null.toml", "--name", "one")
    ran = subprocess.run(
        [*limited, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in ran.stderr, ran.stderr
    paths = RunPaths(folder / "runs" / "one")
    (cell,) = paths.cells.iterdir()
    trial = paths.trial(cell.name, TrialName(1))
    return ran.stderr, read_outcome(trial) if trial.outcome.exists() else None


def test_without_threads_trials_run_unobserved_and_no_node_is_lost(tmp_path: Path) -> None:
    said, outcome = run_limited(tmp_path, 8)
    assert outcome is not None
    assert outcome.is_ok, outcome.reason
    assert "1 of 1 planned trials, 1 ok" in said


def test_where_no_process_can_be_started_the_outcome_says_so_and_blames_no_cell(
    tmp_path: Path,
) -> None:
    for processes in range(2, 8):
        (folder := tmp_path / str(processes)).mkdir()
        said, outcome = run_limited(folder, processes)
        if outcome is not None:
            break
        # There was not even an agent that could have tried.
        assert "this user may have no further process or thread" in said
    assert outcome is not None
    assert outcome.ended == "node-lost"
    assert "this user may have no further process (`ulimit -u`)" in outcome.reason
    assert "1 left, because their nodes failed again and again" in said


def test_where_no_further_file_can_be_opened_that_is_said(tmp_path: Path) -> None:
    prlimit = needs.program("prlimit", package="util-linux")
    (tmp_path / "null.toml").write_text(STUDY)
    command = (sys.executable, "-m", "harness.cli", "run", "null.toml", "--name", "one")
    ran = subprocess.run(
        [prlimit, "--nofile=12", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in ran.stderr, ran.stderr
    assert ran.returncode == 1
    assert "this user may have no further file open (`ulimit -n`" in ran.stderr
