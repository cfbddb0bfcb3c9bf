"""Leave a run to a session without a terminal, look after it, and end it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from harness import locks
from harness.errors import UsageError
from harness.locks import Holder
from harness.run.unattended import detached
from harness.store.layout import RunPaths
from tests.cli.command import bakeoff
from tests.runs import RecordedCell, Recording, write_run

STUDY = """
title = "Left alone"
[matrix]
workload = "tinycnn"
framework = "null"
[measure]
trials = {trials}
warmup = "1 steps"
until = "{until}"
tolerate = ["contended", "throttled", "stalled"]
"""


@pytest.fixture
def leave(tmp_path: Path):
    """Start a study with ``--detach``."""

    def start(until: str, trials: int = 3) -> None:
        (tmp_path / "study.toml").write_text(STUDY.format(until=until, trials=trials), "utf-8")
        told = bakeoff("run", "study.toml", "--detach", "--name", "left", cwd=tmp_path)
        assert told.returncode == 0, told.stderr
        assert "you may log out. What it says: runs/left/jobs/0.log\n" in told.stderr
        assert "Next: bakeoff status runs/left, bakeoff watch runs/left, or" in told.stderr

    return start


def test_a_run_goes_on_without_its_terminal_and_its_end_can_be_awaited(leave, tmp_path) -> None:
    leave("2 steps")
    told = bakeoff("status", "left", "--wait", "--json", cwd=tmp_path)
    assert json.loads(told.stdout)["left"] == 0
    assert "3/3 trials" in (tmp_path / "runs" / "left" / "jobs" / "0.log").read_text()


def test_who_waits_is_told_for_what_and_how_to_stop_waiting(leave, tmp_path) -> None:
    leave("5 min")
    command = [sys.executable, "-m", "harness.cli", "status", "left", "--wait"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as waiting:
        said = waiting.stderr.readline()
        waiting.send_signal(signal.SIGINT)
    assert said == "Waiting for 3 of 3 trials. Ctrl-C ends the waiting alone.\n"
    assert "Ending: the bakeoff process" in bakeoff("cancel", "left", cwd=tmp_path).stderr


def test_cancelling_ends_the_session_and_keeps_what_can_be_resumed(leave, tmp_path) -> None:
    leave("5 min")
    at_work = json.loads(bakeoff("status", "left", "--json", cwd=tmp_path).stdout)["at_work"]
    told = bakeoff("cancel", "left", cwd=tmp_path)
    assert f"Ending: the bakeoff process {at_work['pid']} on" in told.stderr
    status = bakeoff("status", "left", "--wait", cwd=tmp_path).stdout
    assert "To go on: bakeoff resume" in status
    assert "Nobody is at work" in bakeoff("cancel", "left", cwd=tmp_path).stderr


def test_a_lock_that_names_somebody_else_ends_nobody(tmp_path) -> None:
    paths = RunPaths(tmp_path)
    with subprocess.Popen(["sleep", "60"]) as other, paths.lock.open("w") as lock:
        assert locks.take(lock)
        json.dump(asdict(Holder(other.pid, socket.gethostname())), lock)
        lock.flush()
        with pytest.raises(UsageError, match="which does not hold it"):
            detached.end(paths)
        assert other.poll() is None
        other.kill()


def test_before_its_first_trial_a_run_is_seen_with_who_works_on_it(tmp_path) -> None:
    paths = RunPaths(write_run(tmp_path, [RecordedCell()], Recording(trials=0)))
    (paths.root / "cells").mkdir()
    once = ("watch", str(paths.root), "--once")
    said = " ".join(bakeoff(*once, cwd=tmp_path).stdout.split())
    assert "nobody is at work on this run: see `bakeoff status`" in said
    paths.job_log(1).parent.mkdir()
    with paths.lock.open("w") as lock:
        assert locks.take(lock)
        json.dump(asdict(Holder(7, "h1")), lock)
        lock.flush()
        said = " ".join(bakeoff(*once, cwd=tmp_path).stdout.split())
    assert "No trial has begun yet: networks are examined first." in said
    assert "At work: the bakeoff process 7 on h1. What it says:" in said


def test_a_run_says_that_cells_are_left_out_of_it(tmp_path) -> None:
    more = 'device = ["cpu", "gpu"]\n[measure]'
    study = STUDY.format(until="2 steps", trials=1).replace("[measure]", more)
    (tmp_path / "study.toml").write_text(study, "utf-8")
    told = bakeoff("run", "study.toml", "--detach", "--name", "left", cwd=tmp_path)
    assert "Left out: 1 cell; `bakeoff plan` of the same study says why.\n" in told.stderr


def test_what_divides_a_queues_jobs_is_refused_without_a_queue(tmp_path) -> None:
    (tmp_path / "study.toml").write_text(STUDY.format(until="2 steps", trials=3), "utf-8")
    told = bakeoff("run", "study.toml", "--detach", "--max-jobs", "2", cwd=tmp_path)
    assert told.returncode == 2
    assert "this platform has no queue" in told.stderr


def test_what_would_cost_too_much_is_not_left_running(tmp_path) -> None:
    (tmp_path / "study.toml").write_text(STUDY.format(until="5 min", trials=3), "utf-8")
    told = bakeoff("run", "study.toml", "--detach", "--max-node-hours", "0.01", cwd=tmp_path)
    assert told.returncode == 2
    assert "is more than --max-node-hours 0.01; nothing was submitted" in told.stderr
    assert not (tmp_path / "runs").exists()
