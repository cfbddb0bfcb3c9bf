"""This file disturbs trials that run as a person runs them, and looks for it in their verdicts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.store.layout import RunPaths
from harness.store.recording import read_recording
from tests.cli.command import bakeoff
from tests.needs import missing

STUDY = """
title = "Disturbed"
[matrix]
workload = "nothing"
framework = "null"
[measure]
trials = 1
warmup = "3 steps"
until = "3 s"
reruns = {reruns}
"""
BURN = "while True: pass"


def verdict(folder: Path) -> tuple[str, str]:
    done = bakeoff("export", "r", "--table", "trials", "--to", "json", cwd=folder)
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)[-1]
    return row["verdict"], json.dumps(row)


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    burning = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(count)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()


def test_a_neighbour_that_burns_a_core_makes_a_trial_contended_and_run_again(
    tmp_path: Path,
) -> None:
    # one beside each core: wherever the ranks run, they have company
    with neighbours(os.cpu_count() or 1):
        (tmp_path / "disturbed.toml").write_text(STUDY.format(reruns=1), encoding="utf-8")
        done = bakeoff("run", "disturbed.toml", "--name", "r", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told, row = verdict(tmp_path)
    assert told == "contended"
    assert "other processes used" in row
    cells = RunPaths(tmp_path / "runs" / "r").cells
    assert len(list(cells.glob("*/trial-1.2/outcome.json"))) == 1


class Quota:
    """A control group that may use a number of cores."""

    def __init__(self) -> None:
        old = Path("/sys/fs/cgroup/cpu")
        self.folder = (old if old.is_dir() else old.parent) / f"bakeoff-quota-{os.getpid()}"
        self._file, self._form = (
            ("cpu.cfs_quota_us", "{}") if old.is_dir() else ("cpu.max", "{} 100000")
        )
        try:
            self.folder.mkdir()
            self.allow(2.0)
        except OSError as problem:
            missing(f"the right to limit CPU time ({problem})", "run as root with control groups")

    def allow(self, cores: float) -> None:
        (self.folder / self._file).write_text(self._form.format(int(cores * 100_000)))


@pytest.fixture
def quota() -> Iterator[Quota]:
    made = Quota()
    yield made
    made.folder.rmdir()


def test_a_quota_makes_a_trial_throttled(tmp_path: Path, quota: Quota) -> None:
    enter = f'echo $$ > {quota.folder}/cgroup.procs && exec "$@"'
    process = start(tmp_path, "sh", "-c", enter, "sh")
    cells = RunPaths(tmp_path / "runs" / "r").cells
    worker_pid(cells, process)
    # low enough to be felt on a machine whose cores are all taken
    quota.allow(0.05)
    while process.poll() is None and not list(cells.glob("*/*/outcome.json")):
        time.sleep(0.1)
    quota.allow(2.0)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    _, row = verdict(tmp_path)
    assert "cores held the ranks back in" in row


def start(folder: Path, *wrapped_in: str) -> subprocess.Popen[str]:
    (folder / "disturbed.toml").write_text(STUDY.format(reruns=0), encoding="utf-8")
    return subprocess.Popen(
        [*wrapped_in, sys.executable, "-m", "harness.cli", "run", "disturbed.toml", "--name", "r"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_worker_killed_leaves_samples_to_its_end_and_nothing_running(tmp_path: Path) -> None:
    process = start(tmp_path)
    cells = RunPaths(tmp_path / "runs" / "r").cells
    pid = worker_pid(cells, process)
    while process.poll() is None and not is_observed(cells):
        time.sleep(0.02)
    os.kill(pid, 9)
    process.communicate(timeout=60)
    (outcome,) = cells.glob("*/trial-1/outcome.json")
    told = json.loads(outcome.read_text(encoding="utf-8"))
    assert told["ranks"][0]["signal"] == 9
    assert told["survivors"] == 0
    (path,) = outcome.parent.glob("samples.*.bin")
    recording = read_recording(path)
    assert recording is not None
    assert recording.whole
    assert recording.find("rank:0", "rank.user") is not None
    assert not Path(f"/proc/{pid}").exists()


def is_observed(cells: Path) -> bool:
    """Say whether the first readings of the worker are there."""
    recordings = map(read_recording, cells.glob("*/trial-1/samples.*.bin"))
    return any(one is not None and one.find("rank:0", "rank.user") for one in recordings)


def worker_pid(cells: Path, process: subprocess.Popen[str]) -> int:
    """Wait until the worker measures, and give its process."""
    while process.poll() is None:
        for path in cells.glob("*/trial-1/events.0.jsonl"):
            lines = path.read_text(encoding="utf-8").splitlines()
            if any('"measure"' in line for line in lines):
                pid: int = json.loads(lines[0])["pid"]
                return pid
    pytest.fail("the run ended before its worker measured anything")
