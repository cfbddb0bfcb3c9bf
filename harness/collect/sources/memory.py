"""This file reads the node's memory: what is free, cached and dirty, and how hard it was to get.

Source: proc_meminfo(5), proc_vmstat(5).
"""

from __future__ import annotations

from harness.collect.held import hold
from harness.collect.sampler import Observed
from harness.store.samples import UNSUPPORTED, Channel

HZ = 2.0
BLOCKS = False

_SIZES = {
    b"MemTotal": "memory.total",
    b"MemFree": "memory.free",
    b"MemAvailable": "memory.available",
    b"Buffers": "memory.buffers",
    b"Cached": "memory.cached",
    b"Dirty": "memory.dirty",
    b"Writeback": "memory.writeback",
    b"AnonPages": "memory.anonymous",
    b"Shmem": "memory.shared",
    b"SwapTotal": "memory.swap-total",
    b"SwapFree": "memory.swap-free",
}
_EVENTS = {
    b"pgfault": "faults",
    b"pgmajfault": "faults.major",
    b"pswpin": "swapped-in",
    b"pswpout": "swapped-out",
    b"oom_kill": "oom-kills",
}


def open(observed: Observed) -> Memory:  # noqa: A001 - the contract's name
    """Open the source."""
    return Memory(observed)


class Memory:
    """Sizes now, paging since boot."""

    def __init__(self, observed: Observed) -> None:
        self._sizes = hold(observed.root / "proc/meminfo")
        self._events = hold(observed.root / "proc/vmstat", many=True)
        self.channels = (
            *(Channel(name, "bytes", "gauge", "node", 1024.0) for name in _SIZES.values()),
            *(Channel(name, "1", "counter", "node") for name in _EVENTS.values()),
        )

    def read(self) -> list[int]:
        """Read both files."""
        sizes = {}
        for line in self._sizes.read().split(b"\n"):
            name, _, value = line.partition(b":")
            if name in _SIZES:
                sizes[name] = int(value.split(None, 1)[0])
        events = {}
        for line in self._events.read().split(b"\n"):
            name, _, value = line.partition(b" ")
            if name in _EVENTS:
                events[name] = int(value)
        return [
            *(sizes.get(name, UNSUPPORTED) for name in _SIZES),
            *(events.get(name, UNSUPPORTED) for name in _EVENTS),
        ]

    def close(self) -> None:
        """Close what was opened."""
        self._sizes.close()
        self._events.close()
