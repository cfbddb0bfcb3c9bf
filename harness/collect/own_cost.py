"""Read what observing itself costs, and how well its ticks were kept."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from harness.collect.lane import Counts
from harness.collect.recorder import Recording
from harness.store.samples import samples_format
from harness.store.samples.samples_format import Channel

ANCHOR_NS = 5_000_000_000


class OwnCost:
    """What observing costs, read like everything else."""

    channels = (
        Channel("observer.cpu", "s", "counter", "observer", 1e-9),
        Channel("observer.session", "s", "counter", "observer", 1e-9, meaning="of who started it"),
        Channel("observer.resident", "bytes", "gauge", "observer"),
        Channel("observer.peak", "bytes", "gauge", "observer"),
        Channel("observer.ticks", "1", "counter", "observer"),
        Channel("observer.late", "1", "counter", "observer"),
        Channel("observer.missed", "1", "counter", "observer"),
        Channel("observer.written", "bytes", "counter", "observer"),
    )

    def __init__(self, recording: Recording, counts: Counts) -> None:
        self._recording = recording
        self._counts = counts
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._statm: int | None = None
        self._peak: int = samples_format.UNSUPPORTED  # which is less than any reading
        if Path("/proc/self/statm").exists():
            self._statm = os.open("/proc/self/statm", os.O_RDONLY)
        self._anchored = time.monotonic_ns()
        self._session = os.getppid()

    def read(self) -> list[int]:
        """Read this process's own use; tie the clocks together now and then."""
        now = time.monotonic_ns()
        if now - self._anchored >= ANCHOR_NS:
            self._anchored = now
            self._recording.anchor()
        resident = samples_format.UNSUPPORTED
        if self._statm is not None:
            resident = int(os.pread(self._statm, 128, 0).split()[1]) * self._page
            # Not ru_maxrss: it survives exec, and would show the peak of whoever started this.
            self._peak = max(self._peak, resident)
        counts = self._counts
        return [
            time.process_time_ns(),
            self._session_ns(),
            resident,
            self._peak,
            counts.ticks,
            counts.late,
            counts.missed,
            self._recording.bytes,
        ]

    def _session_ns(self) -> int:
        """Read the CPU clock of the session that started this process (clock_getres(2))."""
        if self._session > 1 and os.getppid() == self._session:
            with suppress(OSError):
                # MAKE_PROCESS_CPUCLOCK of the kernel and of glibc
                return time.clock_gettime_ns(~self._session << 3 | 2)
        return samples_format.UNSUPPORTED

    def close(self) -> None:
        """Close the opened files."""
        if self._statm is not None:
            os.close(self._statm)
            self._statm = None
