"""An adapter whose warm-up waits for a test, and whose end does too: nobody polls.

In the study's folder lie two pipes with names: into ``from-worker`` it says its process and its
trial's folder, then that it has measured; each time it goes on when ``to-worker`` is closed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

STEP_S = 0.002


class Met:
    """Adapter and activity in one."""

    def __init__(self, job: Any) -> None:
        self.units = {"steps": 1.0}
        self._folder = job.directory
        self._pipes = Path(job.directory).parents[4]
        self._steps = 0

    def _meet(self) -> None:
        with (self._pipes / "from-worker").open("w") as said:
            said.write(json.dumps({"pid": os.getpid(), "folder": self._folder}))
        with (self._pipes / "to-worker").open() as heard:
            heard.read()

    def versions(self) -> Mapping[str, str]:
        return {"met": "1.0"}

    def activity(self, workload: Any, feed: Any, options: Mapping[str, Any]) -> Met:
        return self

    def step(self) -> None:
        self._steps += 1
        if self._steps == 2:
            self._meet()
        end = time.process_time() + STEP_S
        while time.process_time() < end:
            pass

    def sync(self) -> None:
        pass

    def values(self) -> Mapping[str, float]:
        return {}

    def agree(self, value: float) -> float:
        return value

    def facts(self) -> Mapping[str, Any]:
        return {}

    def close(self) -> None:
        self._meet()


def open(job: Any, place: Any) -> Met:  # noqa: A001 - the contract's name
    return Met(job)
