"""What reads the same files in turn: our readers, torch's, and fio."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.worker.input.dataset import Dataset
from harness.worker.input.evidence import page_cache

INSIDE = Path(__file__).with_name("inside.py")
ROOT = Path(__file__).parents[3]


class Reader:
    """One of our readers, waiting in a process of its own to be told to read an epoch."""

    def __init__(self, python: Path, folder: Path, factors: Mapping[str, Any]) -> None:
        given = {"cache": "cold", "format": folder.name.split("-")[-2], **factors}
        self._process = subprocess.Popen(
            [str(python), str(INSIDE), str(folder), json.dumps(given)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    def _told(self, steps: int) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{steps}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"a reader ended with {self._process.wait()}")
        told: dict[str, Any] = json.loads(line)
        return told

    def epoch(self) -> dict[str, Any]:
        """Read all files once, cold."""
        return self._told(0)

    def computed_s(self, steps: int) -> float:
        """Only compute, so many batches."""
        return float(self._told(steps)["elapsed_s"])

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


class Fio:
    """fio, each of its jobs with files of its own, one request a file."""

    def __init__(self, folder: Path, jobs: int) -> None:
        self._dataset = Dataset(str(folder))
        self._jobs = jobs

    def epoch(self) -> dict[str, Any]:
        """Read all files once, cold."""
        dataset = self._dataset
        length = int(dataset.manifest["largest"])
        offset = dataset.stretch(0).offset
        with tempfile.NamedTemporaryFile("w", suffix=".fio") as file:
            file.write(
                f"[global]\nrw=read\nioengine=psync\ninvalidate=0\nfadvise_hint=0\nthread\n"
                f"bs={length}\noffset={offset}\nfile_service_type=sequential\n"
            )
            for job in range(self._jobs):
                own = dataset.paths[job :: self._jobs]
                file.write(f"[job{job}]\nfilename={':'.join(own)}\nsize={length * len(own)}\n")
            file.flush()
            page_cache.evict(dataset.paths)
            done = subprocess.run(
                ["fio", "--output-format=json", "--group_reporting", file.name],
                check=True,
                capture_output=True,
                text=True,
            )
        (told,) = json.loads(done.stdout)["jobs"]
        read = told["read"]
        if read["io_bytes"] != length * dataset.samples:
            sys.exit(f"fio read {read['io_bytes']} bytes of {length * dataset.samples}")
        return {"bytes": read["io_bytes"], "elapsed_s": read["runtime"] / 1e3}

    def close(self) -> None:
        """End nothing."""
