"""Read the machine through psutil, on other systems than Linux."""

from __future__ import annotations

import platform

from harness.collect.sampler import Observed
from harness.errors import Unavailable
from harness.store.samples.samples_format import ENDED, Channel

HZ = 2.0
BLOCKS = False

_TICK = 1e-3


def open(observed: Observed) -> Portable:  # noqa: A001 - the contract's name
    """Open the source."""
    if platform.system() == "Linux":
        raise Unavailable("Linux's own files are read instead")
    return Portable(observed)


class Portable:
    """Cores, memory and the ranks' own processes, under the names that Linux's sources use."""

    def __init__(self, observed: Observed) -> None:
        import psutil

        self._psutil = psutil
        self._ranks = [psutil.Process(pid) for pid in observed.ranks.values()]
        channels = [
            Channel(f"cpu.{state}", "s", "counter", f"core:{core}", _TICK)
            for core in range(len(psutil.cpu_times(percpu=True)))
            for state in ("user", "system", "idle")
        ]
        channels += [
            Channel("memory.total", "bytes", "gauge", "node"),
            Channel("memory.available", "bytes", "gauge", "node"),
        ]
        for rank in observed.ranks:
            channels += [
                Channel("rank.user", "s", "counter", f"rank:{rank}", _TICK),
                Channel("rank.system", "s", "counter", f"rank:{rank}", _TICK),
                Channel("rank.resident", "bytes", "gauge", f"rank:{rank}"),
            ]
        self.channels = tuple(channels)

    def read(self) -> list[int]:
        """Ask psutil for everything."""
        values = [
            round(seconds / _TICK)
            for core in self._psutil.cpu_times(percpu=True)
            for seconds in (core.user, core.system, core.idle)
        ]
        memory = self._psutil.virtual_memory()
        values += [memory.total, memory.available]
        for process in self._ranks:
            try:
                times, resident = process.cpu_times(), process.memory_info().rss
                values += [round(times.user / _TICK), round(times.system / _TICK), resident]
            except self._psutil.NoSuchProcess:
                values += [ENDED] * 3
        return values

    def close(self) -> None:
        """Nothing is held open."""
