"""Run workers in processes that have imported their framework before, which takes them longest."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.study.framework import framework_info
from tests.needs import framework

FORKING = Path(__file__).with_name("forking.py")
COMPILERS = {"torch": ("torch._dynamo",)}
"""What an adapter imports besides its framework before it does anything, in most of a trial's time:
torch's settings of determinism reach its compiler's."""


class Workers:
    """One process per framework that has imported it, which forks a worker for each job.

    All of them share what a framework compiles: it is kept by the program, so a fault that changes
    the program is compiled anew.
    """

    def __init__(self, compiled: Path) -> None:
        self._compiled = compiled
        self._started: dict[str, subprocess.Popen[str]] = {}

    def run(
        self, name: str, place: Path, path: Sequence[Path], env: Mapping[str, str] | None = None
    ) -> None:
        """Run the job of a place to its end, with these folders searched for modules."""
        if name not in self._started:
            self._started[name] = subprocess.Popen(
                [framework(name), FORKING, name, *COMPILERS.get(name, ())],
                env={"PATH": os.environ["PATH"], **compile_caches(name, self._compiled)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        process = self._started[name]
        assert process.stdin is not None
        assert process.stdout is not None
        asked = {
            "cwd": str(place),
            "path": [str(one) for one in path],
            "env": {"HOME": str(place), **(env or {})},
        }
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        code = process.stdout.readline().strip()
        assert code == "0", (place / "words").read_text()

    def close(self) -> None:
        """End them all."""
        for process in self._started.values():
            process.communicate()


def compile_caches(name: str, compiled: Path) -> dict[str, str]:
    """Point a framework to where it keeps what it compiles; here even what compiles fast."""
    caches = framework_info(name).variables.caches
    return {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"} | {
        variable: str(compiled / folder) for variable, folder in caches.items()
    }
