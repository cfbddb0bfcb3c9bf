"""Start two ranks of a job in a framework's interpreter, and wait for both."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from typing import Any

from tests.adapters.interpreter import ROOT, written
from tests.needs import framework

PATIENCE_S = 240


def run_two(environment: str, folder: Path, **fields: Any) -> list[int]:
    """Let both ranks of a job run to their end; give how each ended. They print beside the job."""
    written(environment, folder, fields)
    port = _port()
    ranks = [_rank(environment, number, folder, port) for number in range(2)]
    try:
        return [rank.wait(PATIENCE_S) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()  # of one that never came the other may still wait


def _rank(environment: str, number: int, folder: Path, port: int) -> subprocess.Popen[bytes]:
    place = {"BAKEOFF_RANK": number, "BAKEOFF_SIZE": 2, "BAKEOFF_LOCAL_RANK": number}
    place |= {"BAKEOFF_LOCAL_SIZE": 2, "MASTER_PORT": port}
    told = {name: str(value) for name, value in place.items()}
    with (folder / f"printed.{number}").open("wb") as printed:
        return subprocess.Popen(
            [framework(environment), "-m", "harness.worker", str(folder / "job.json")],
            env={**os.environ, **told, "MASTER_ADDR": "127.0.0.1"},
            cwd=ROOT,
            stdout=printed,
            stderr=printed,
        )


def _port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
