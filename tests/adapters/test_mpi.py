from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.worker import job as jobs
from harness.worker.scale import Scale
from tests.adapters.interpreter import ROOT, losses, python, told, work
from tests.needs import program

pytestmark = [pytest.mark.framework, pytest.mark.timeout(120)]


def exchanged(folder: Path, name: str, size: int) -> list[dict[str, Any]]:
    """Let mpirun start two ranks of a job; give what the second one says."""
    job = jobs.Job(
        *("trial", "k", "t", name, f"workloads.{name.replace('-', '_')}", "mpi"),
        adapter_module="harness.worker.adapters.mpi",
        environment="mpi",
        strategy="mpi",
        scale=Scale(ranks_per_node=2),
        factors={"message_bytes": size},
        options={},
        warmup=jobs.Span(steps=3),
        until=jobs.Span(steps=10),
        seed=1,
        directory=str(folder),
    )
    path = folder / "job.json"
    path.write_text(jobs.text(job), encoding="utf-8")
    mpirun = (program("mpirun", package="openmpi-bin"), "--allow-run-as-root", "--oversubscribe")
    worker = (python("mpi"), "-m", "harness.worker", path)
    made = subprocess.run(
        [*mpirun, "-np", "2", "--bind-to", "none", *worker],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    lines = (folder / "events.1.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("name", ["all-reduce", "all-gather", "broadcast", "point-to-point"])
def test_an_mpi_exchanges_what_it_was_given(tmp_path, name):
    events = exchanged(tmp_path, name, 4000)
    assert events[-1]["event"] == "finished"
    assert told(events, "units")["units"] == {"bytes": 2000.0}
    assert told(events, "facts")["facts"]["collectives"].startswith("mpi: ")
    assert not losses(events)


def test_ranks_that_no_mpi_started_are_told_what_to_do(tmp_path, monkeypatch):
    program("mpirun", package="openmpi-bin")
    for key, value in (("RANK", "0"), ("SIZE", "2"), ("LOCAL_RANK", "0"), ("LOCAL_SIZE", "2")):
        monkeypatch.setenv(f"BAKEOFF_{key}", value)
    events = work(
        *("mpi", tmp_path),
        workload="all-reduce",
        workload_module="workloads.all_reduce",
        adapter_module="harness.worker.adapters.mpi",
        strategy="mpi",
        scale=Scale(ranks_per_node=2),
        factors={"message_bytes": 4000},
    )
    failed = told(events, "failed")
    assert failed["kind"] == "unsupported"
    assert "the MPI sees 1 of 2 ranks" in failed["message"]
