"""Start two ranks of a job in a framework's interpreter, and wait for both."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

from harness.worker import job as jobs
from harness.worker.job import Job
from tests.needs import framework

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 240


def run_two(job: Job, folder: Path) -> list[int]:
    """Let both ranks of a job run to their end; give how each ended. They print beside the job."""
    (folder / "job.json").write_text(jobs.text(job), "utf-8")
    ports = _ports(3)
    ranks = [_rank(job.environment, number, folder, ports) for number in range(2)]
    try:
        return [rank.wait(PATIENCE_S) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()  # of one that never came the other may still wait


def _rank(environment: str, number: int, folder: Path, ports: list[int]) -> subprocess.Popen[bytes]:
    place = {"BAKEOFF_RANK": number, "BAKEOFF_SIZE": 2, "BAKEOFF_LOCAL_RANK": number}
    place |= {"BAKEOFF_LOCAL_SIZE": 2, "MASTER_PORT": ports[0]}
    told = {name: str(value) for name, value in place.items()}
    workers = [f"127.0.0.1:{port}" for port in ports[1:]]
    task = {"type": "worker", "index": number}
    told["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": task})
    with (folder / f"printed.{number}").open("wb") as printed:
        return subprocess.Popen(
            [framework(environment), "-m", "harness.worker", str(folder / "job.json")],
            env={**os.environ, **told, "MASTER_ADDR": "127.0.0.1"},
            cwd=ROOT,
            stdout=printed,
            stderr=printed,
        )


def _ports(count: int) -> list[int]:
    with ExitStack() as held:
        free = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in free:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in free]
