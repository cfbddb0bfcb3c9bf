"""Keep what taking turns does to the rates of cells on this machine, for later runs.

A turn begins by settling; by how much the rate then differs from the one that is measured next is
what taking turns does to it. It is kept by cell, code, environment, platform, machine, length of
turns and number of trials that live together, one small file each, under ``STATE/turns/``.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from math import isfinite
from pathlib import Path

from harness import user_folders
from harness.environments import cache
from harness.machine import share
from harness.run.trials.prepared import Prepared
from harness.stats.turn_bias import MOST, is_known
from harness.store.json_text import parse
from harness.study.measure import Measure

_MOST_BYTES = 1 << 16


class KnownBias:
    """What is known to one session, and found in it."""

    def __init__(self, measure: Measure, cells: Mapping[str, Prepared], run: str) -> None:
        self._measure = measure
        self._cells = cells
        self._run = run

    def is_wanted(self, key: str, together: int) -> bool:
        """Tell whether more should be found of a cell that lives with so many, itself too."""
        return together > 1 and not is_known(self.known(key, together))

    def known(self, key: str, together: int) -> tuple[float, ...]:
        """Give what earlier runs found of such a cell here, the newest last."""
        logs = [log for run, logs in self._kept(key, together) if run != self._run for log in logs]
        return tuple(logs[-MOST:])

    def learn(self, key: str, together: int, logs: tuple[float, ...]) -> None:
        """Keep what the turns of a trial told; where nothing can be kept, less is known later."""
        if not logs:
            return
        line = json.dumps({"run": self._run, "logs": [round(log, 5) for log in logs]}) + "\n"
        file = self._file(key, together)
        with suppress(OSError):
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(file, flags, 0o600)
            try:
                if os.fstat(descriptor).st_size < _MOST_BYTES:
                    os.write(descriptor, line.encode())
            finally:
                os.close(descriptor)

    def _kept(self, key: str, together: int) -> Iterator[tuple[str, list[float]]]:
        try:
            data = self._file(key, together).read_bytes()[: 2 * _MOST_BYTES]
        except OSError:
            return
        for line in data.splitlines():
            with suppress(ValueError):  # it was cut off
                said = parse(line)
                logs = said.get("logs") if isinstance(said, dict) else None
                if isinstance(logs, list):
                    numbers = [one for one in logs if isinstance(one, float) and isfinite(one)]
                    yield str(said.get("run")), numbers

    def _file(self, key: str, together: int) -> Path:
        here = (socket.gethostname(), share.cpu(), os.cpu_count())
        length = (vars(self._measure.until), self._measure.turn_s)
        what = cache.digest([key, self._cells[key].fingerprint, here, length, together])
        return user_folders.state_home() / "turns" / what
