"""Write a trial's samples file: every frame appended whole, whichever thread it comes from."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.store.samples import samples_format
from harness.store.samples.samples_format import Channel, Declared


class Recording:
    """An open samples file; frames of all threads go in whole."""

    def __init__(self, path: Path, **facts: Any) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW
        self._descriptor = os.open(path, flags, 0o644)
        self._lock = threading.Lock()
        self._groups = 0
        self.closed = False
        self.problem: OSError | None = None
        """Why nothing is written any more: a full disk, for example."""
        self.begun_ns = time.monotonic_ns()
        self.fault: str | None = None
        """What ended one of the threads."""
        self.bytes = 0
        self.stand_ins: list[str] = []
        """Devices that their source found to be pretended."""
        self.append(samples_format.header(**facts))
        self.anchor()

    def append(self, data: bytes) -> None:
        """Write frames; after the first failure nothing more, so that what is there stays whole."""
        with self._lock:
            if self.closed or self.problem is not None:
                return
            self.bytes += len(data)
            try:
                while data:
                    data = data[os.write(self._descriptor, data) :]
            except OSError as problem:
                self.problem = problem

    def anchor(self) -> None:
        """Tie the node's monotonic clock to its wall clock."""
        self.append(samples_format.anchor(time.monotonic_ns(), time.time_ns(), time.monotonic_ns()))

    def group(self, source: str, period_ns: int, first_ns: int, channels: Sequence[Channel]) -> int:
        """Declare a group; give its number."""
        with self._lock:
            number = self._groups
            self._groups += 1
        self.append(
            samples_format.declare(Declared(number, source, period_ns, first_ns, tuple(channels)))
        )
        return number

    def note(self, what: str, **facts: Any) -> None:
        """Write down something that happened."""
        self.append(samples_format.note(what, t=time.monotonic_ns(), **facts))

    def close(self) -> None:
        """End the file; what a forgotten thread still reads goes nowhere."""
        with self._lock:
            if not self.closed:
                self.closed = True
                os.close(self._descriptor)
