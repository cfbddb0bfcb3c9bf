"""These tests hold what is said of jobs that a queue has forgotten to what its accounts tell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli.verbs.status import QueuedJob, RunStatus, in_words
from harness.errors import Unavailable
from harness.platform.platform import Platform
from harness.platform.starting import Launcher
from harness.run.unattended import queue
from harness.run.unattended.queue import JobInQueue, JobState

SLURM = Platform.model_construct(name="p", launcher=Launcher(name="slurm"))
JOBS = [JobInQueue(n, str(n), 1, 5, ()) for n in (7, 8, 9)]


def sacct(folder: Path, monkeypatch: pytest.MonkeyPatch, *lines: str, code: int = 0) -> None:
    """Put a program in the place of Slurm's."""
    program = folder / "sacct"
    program.write_text("#!/bin/sh\n" + "\n".join(lines) + f"\nexit {code}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_how_jobs_ended_is_read_from_the_accounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = ("7|TIMEOUT|00:07:01", "8_1|COMPLETED|00:01:00", "8_2|NODE_FAIL|00:00:30")
    sacct(tmp_path, monkeypatch, 'test "${5#--jobs=}" = 7,8,9 || exit 9', f"echo '{told[0]}'",
          f"echo '{told[1]}'", f"echo '{told[2]}'")  # fmt: skip
    assert queue.ends(SLURM, JOBS) == {
        "7": JobState("TIMEOUT", "00:07:01", ""),
        "8": JobState("NODE_FAIL", "00:00:30", "part 2"),
    }


def test_a_queue_without_accounts_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sacct(tmp_path, monkeypatch, "echo 'accounting storage is disabled' >&2", code=1)
    with pytest.raises(
        Unavailable, match="sacct ended with 1: accounting storage is disabled"
    ) as told:
        queue.ends(SLURM, JOBS)
    job = QueuedJob(allocation=1, job="7", nodes=1, left=2)
    said = RunStatus(
        "r", total=4, done=2, ok=2, left=2, attempts=2, counts="2/4", queued=0, jobs=(job,)
    )
    assert in_words(replace(said, accounts=str(told.value)))[1:] == [
        "  job 7, 1 node: no longer in the queue; 2 trials left",
        "How jobs ended is not known: sacct ended with 1: accounting storage is disabled",
        "Nobody is at work on it. To go on: bakeoff resume r --detach",
    ]
    ended = replace(job, state="TIMEOUT", ended=True, elapsed="00:07:01")
    assert in_words(replace(said, jobs=(ended,)))[1] == (
        "  job 7, 1 node: timeout after 00:07:01; 2 trials left"
    )
