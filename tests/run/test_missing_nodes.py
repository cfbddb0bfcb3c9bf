"""These tests hold a session whose nodes die to running what is left of its work."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from harness.cli.main import _run
from harness.errors import Unavailable
from harness.plan.plan import Plan, make_plan
from harness.platform.platform import load_platform
from harness.run import session
from harness.run.progress import SessionResult
from harness.run.session import resume, start
from harness.run.unattended import queue
from harness.store.files import write_json
from harness.store.layout import RunPaths
from harness.study.study import load_study
from tests.run.test_session import Listener

STUDY = """title = "Null"
[matrix]
workload = "tinycnn"
framework = "null"
strategy = "ddp"
nodes = [1, 2]
[measure]
trials = 2
warmup = "3 steps"
until = "20 ms"
tolerate = ["contended", "throttled", "stalled"]
"""
PLATFORM = """title = "Two names of this machine"
nodes = 2
[launcher]
name = "ssh"
settings = {{ hosts = "n[1-2]", command = "sh {ssh}" }}
[binding]
oversubscribe = true
[observer]
cores = 0
"""
# Goes nowhere, but takes its words as ssh does; n2 answers while the file is there.
SSH = """#!/bin/sh
while [ "$1" = -o ]; do shift 2; done
test "$1" = n1 -o -e {alive} || {{ echo "connect to n2: No route to host" >&2; exit 255; }}
shift
exec sh -c "$*"
"""


@pytest.fixture
def alive(tmp_path: Path) -> Path:
    return tmp_path / "n2-is-alive"


@pytest.fixture
def plan(tmp_path: Path, alive: Path) -> Plan:
    for name, text in {"study.toml": STUDY, "there.toml": PLATFORM, "ssh": SSH}.items():
        filled = text if name == "study.toml" else text.format(ssh=tmp_path / "ssh", alive=alive)
        (tmp_path / name).write_text(filled)
    return make_plan(
        load_study(tmp_path / "study.toml"), load_platform(str(tmp_path / "there.toml"))
    )


def test_narrower_trials_go_on_and_wider_ones_wait_for_nodes(plan, tmp_path, alive):
    listener = Listener()
    result = start(plan, root=tmp_path / "run", study_text=STUDY, observer=listener)
    assert (result.done, result.ok, result.waiting, result.skipped) == (2, 2, 2, 0)
    assert [note for note in listener.notes if "there offers 1 of 2 nodes here." in note]
    alive.touch()
    result = resume(tmp_path / "run", observer=Listener())
    assert (result.done, result.ok, result.waiting) == (4, 4, 0)


def test_where_nothing_can_be_run_that_is_the_answer(plan, tmp_path):
    wide = [cell.key for cell in plan.cells if cell.factors["nodes"] == 2]
    start(plan, root=tmp_path / "run", study_text=STUDY, observer=Listener())
    with pytest.raises(Unavailable, match="there offers 1 of 2 nodes here"):
        resume(tmp_path / "run", only=wide, observer=Listener())


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand in for a queue that starts the job again, and count how often it is asked to."""
    found: list[str] = []

    def requeue(platform, say) -> bool:
        say()
        found.append(platform.name)
        return True

    monkeypatch.setattr(queue, "requeue", requeue)
    return found


@pytest.fixture
def job(plan, tmp_path) -> list[str]:
    """Run what one node can, and give the words that a job for the rest is started with."""
    start(plan, root=tmp_path / "run", study_text=STUDY, observer=Listener())
    wide = [cell.key for cell in plan.cells if cell.factors["nodes"] == 2]
    one = {"number": 1, "job": "7", "nodes": 2, "minutes": 5, "keys": wide}
    write_json(RunPaths(tmp_path / "run").jobs, {"version": 1, "jobs": [one]})
    return ["resume", str(tmp_path / "run"), "--allocation", "1"]


def test_a_job_that_can_run_nothing_for_want_of_nodes_is_started_again(job, asked, capsys):
    assert _run(job) == 1
    assert asked == ["there"]
    said = capsys.readouterr().err
    assert "there offers 1 of 2 nodes here" in said
    assert "The queue is asked to run this job again" in said


def test_a_job_that_was_told_to_stop_is_not_started_again(job, asked, monkeypatch, tmp_path):
    counts = {"total": 2, "done": 0, "ok": 0, "failed": 0, "skipped": 0, "waiting": 2}
    cut = SessionResult(tmp_path / "run", **counts, interrupted=143)
    monkeypatch.setattr(session, "resume", lambda *_, **__: cut)
    assert _run(job) == 143
    assert asked == []


def test_a_session_that_is_stopped_where_too_few_nodes_answer_says_that_it_was_stopped(
    job, plan, tmp_path
):
    class Stopping(Listener):
        def noted(self, text: str) -> None:
            if "Stopping" not in text:
                signal.raise_signal(signal.SIGTERM)

    wide = [cell.key for cell in plan.cells if cell.factors["nodes"] == 2]
    result = resume(tmp_path / "run", only=wide, observer=Stopping())
    assert (result.waiting, result.interrupted) == (2, 143)
