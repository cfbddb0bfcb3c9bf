"""Tell a person who waits for a session that its machine is busy with more than the session."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from harness.machine.small_files import read_small
from harness.run.progress import Progress, ProgressListener
from harness.store.outcome import Outcome

_LOOKS = 10
"""Looks, at least a second apart, whose mean is believed: one alone catches any moment's burst."""
_APART_S = 1.0
_TIMES = 2
"""With so many threads for each CPU, a session that has one for each gets half of the machine."""


def runnable() -> int | None:
    """Count the threads that compute or want to, without the one that asks; None if unknown."""
    fields = read_small(Path("/proc/loadavg")).split()
    now = fields[3].partition("/")[0] if len(fields) > 3 else ""
    return int(now) - 1 if now.isdigit() else None


class CrowdTold:
    """A listener that passes everything on, and notes once when trials have to queue for CPUs."""

    def __init__(
        self,
        listener: ProgressListener,
        *,
        look: Callable[[], int | None] = runnable,
        clock: Callable[[], float] = time.monotonic,
        cpus: int | None = None,
    ) -> None:
        self._listener = listener
        self._look = look
        self._clock = clock
        self._cpus = cpus or os.cpu_count() or 1
        self._seen: list[int] = []
        self._next_s = 0.0
        self._is_told = False

    def progressed(self, progress: Progress) -> None:
        """Look, where a trial is being measured, and pass the progress on."""
        if progress.rate is not None and not self._is_told and self._clock() >= self._next_s:
            self._next_s = self._clock() + _APART_S
            self._count()
        self._listener.progressed(progress)

    def trial_ended(self, progress: Progress, outcome: Outcome) -> None:
        """Pass the outcome on."""
        self._listener.trial_ended(progress, outcome)

    def doing(self, text: str) -> None:
        """Pass the activity on."""
        self._listener.doing(text)

    def noted(self, text: str) -> None:
        """Pass the note on."""
        self._listener.noted(text)

    def _count(self) -> None:
        now = self._look()
        if now is None:
            return
        self._seen = [*self._seen, now][-_LOOKS:]
        mean = sum(self._seen) / len(self._seen)
        if len(self._seen) == _LOOKS and mean > _TIMES * self._cpus:
            self._is_told = True
            self._listener.noted(
                f"Busy machine: {mean:.3g} threads want its {self._cpus} CPUs, this run's own "
                "among them, so trials may be many times slower than alone. Cells that name no "
                "`threads` have one for each CPU and wait for whichever is held up; "
                "--set matrix.threads=1 leaves room for others."
            )
