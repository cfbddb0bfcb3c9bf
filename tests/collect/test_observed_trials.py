"""Disturb trials that run as a person runs them, and look for it in their verdicts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.store.layout import RunPaths, TrialPaths
from harness.store.samples.recording import read_recording
from tests.cli.command import bakeoff
from tests.collect.observing import wait_for
from tests.quota import Quota

PLUGIN = Path(__file__).with_name("met")
STUDY = """
title = "Disturbed"
[matrix]
workload = "nothing"
framework = "{framework}"
[measure]
trials = 1
warmup = "3 steps"
until = "{until}"
reruns = {reruns}
tolerate = {tolerate}
"""
PLATFORM = f"""
title = "The machine of the tests"
as_found = true
nodes = 1
[frameworks.met]
interpreter = "{sys.executable}"
"""
BURN = "while True: pass"


def judged(folder: Path) -> dict[str, Any]:
    done = bakeoff("export", "r", "--table", "trials", "--to", "json", cwd=folder)
    assert done.returncode == 0, done.stderr
    row: dict[str, Any] = json.loads(done.stdout)[-1]
    return row


def write(
    folder: Path, framework: str, until: str, reruns: int = 0, tolerate: tuple[str, ...] = ()
) -> None:
    told = STUDY.format(
        framework=framework, until=until, reruns=reruns, tolerate=json.dumps(tolerate)
    )
    (folder / "disturbed.toml").write_text(told, encoding="utf-8")
    (folder / "here.toml").write_text(PLATFORM, encoding="utf-8")


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    burning = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(count)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()


def test_a_neighbour_that_burns_a_core_makes_a_trial_contended_and_is_named(
    tmp_path: Path,
) -> None:
    write(tmp_path, "null", "3 s", reruns=1)
    # one beside each core: wherever the ranks run, they have company
    with neighbours(os.cpu_count() or 1):
        done = bakeoff("run", "disturbed.toml", "--name", "r", cwd=tmp_path)
    assert done.returncode == 1, done.stderr  # no trial counts
    row = judged(tmp_path)
    assert row["verdict"] == "contended"
    assert "other processes used" in json.dumps(row)
    # on a crowded machine others may be busier than ours
    assert re.search(r"busiest on the node: .+ \(process \d+\) 0\.\d\d", json.dumps(row))
    cells = RunPaths(tmp_path / "runs" / "r").cells
    assert len(list(cells.glob("*/trial-1.2/outcome.json"))) == 1


class Met:
    """A trial whose worker waits for the test, and the command that runs it."""

    def __init__(self, folder: Path, *wrapped_in: str) -> None:
        self._folder = folder
        for name in ("from-worker", "to-worker"):
            os.mkfifo(folder / name)
        command = ("-m", "harness.cli", "run", "disturbed.toml", "--platform", "here.toml")
        self.process = subprocess.Popen(
            [*wrapped_in, sys.executable, *command, "--name", "r"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": f"{PLUGIN}{os.pathsep}{Path.cwd()}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def worker(self) -> dict[str, Any]:
        """Wait until the worker comes, and give what it says of itself."""
        said: dict[str, Any] = json.loads((self._folder / "from-worker").read_text())
        return said

    def go_on(self) -> None:
        """Let the worker go on."""
        (self._folder / "to-worker").write_text("")

    def end(self) -> str:
        _, said = self.process.communicate(timeout=100)
        return said


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Met]]:
    begun = []

    def begin(*wrapped_in: str) -> Met:
        begun.append(Met(tmp_path, *wrapped_in))
        return begun[-1]

    yield begin
    for one in begun:
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate()


@pytest.fixture
def quota() -> Iterator[Quota]:
    made = Quota()
    yield made
    made.end()


def test_a_quota_makes_a_trial_throttled(
    tmp_path: Path, quota: Quota, start: Callable[..., Met]
) -> None:
    # whoever else is on this machine is of no interest here, and hides no quota
    write(tmp_path, "met", "2 s", tolerate=("contended",))
    met = start("sh", "-c", f'echo $$ > {quota.folder}/cgroup.procs && exec "$@"', "sh")
    met.worker()
    # low enough to be felt on a machine whose cores are all taken
    quota.allow(0.1)
    met.go_on()
    met.worker()
    quota.allow(2.0)
    met.go_on()
    said = met.end()
    assert met.process.returncode == 1, said  # no trial counts
    row = judged(tmp_path)
    assert row["verdict"] == "throttled"
    assert "cores held the ranks back in" in json.dumps(row)
    shown = bakeoff("show", "r", cwd=tmp_path)
    assert "throttled" in shown.stdout + shown.stderr
    bakeoff("report", "r", cwd=tmp_path)
    page = RunPaths(tmp_path / "runs" / "r").report.read_text(encoding="utf-8")
    assert "throttled" in page


def test_a_worker_killed_leaves_samples_to_its_end_and_nothing_running(
    tmp_path: Path, start: Callable[..., Met]
) -> None:
    write(tmp_path, "met", "2 s")
    met = start()
    worker = met.worker()
    trial = TrialPaths(Path(worker["folder"]))
    (path,) = trial.root.glob(trial.samples("*").name)
    wait_for(path, ("rank:0", "rank.user"))
    os.kill(worker["pid"], 9)
    met.end()
    told = json.loads(trial.outcome.read_text(encoding="utf-8"))
    assert told["ranks"][0]["signal"] == 9
    assert told["survivors"] == 0
    recording = read_recording(path)
    assert recording is not None
    assert recording.whole
    assert recording.find("rank:0", "rank.user") is not None
    assert not Path(f"/proc/{worker['pid']}").exists()
