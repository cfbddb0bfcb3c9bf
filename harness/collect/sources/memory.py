"""Read the node's memory: what is free, cached and dirty, and how hard it was to get.

Source: proc_meminfo(5), proc_vmstat(5).
"""

from __future__ import annotations

from harness.collect.open_files import hold, number_after
from harness.collect.sampler import Observed
from harness.store.samples.samples_format import Channel

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

# The two files have some 250 lines, of which a few are wanted: looked for, not parsed. None of the
# names wanted is on a first line but MemTotal, which is why that is looked for without its newline.
_SIZE_KEYS = tuple((b"\n" if name != b"MemTotal" else b"") + name + b":" for name in _SIZES)
_EVENT_KEYS = tuple(b"\n" + name + b" " for name in _EVENTS)


def open(observed: Observed) -> Memory:  # noqa: A001 - the contract's name
    """Open the source."""
    return Memory(observed)


class Memory:
    """Sizes now, paging since boot."""

    lasts = True

    def __init__(self, observed: Observed) -> None:
        self._sizes = hold(observed.root / "proc/meminfo")
        self._events = hold(observed.root / "proc/vmstat", many=True)
        self.channels = (
            *(Channel(name, "bytes", "gauge", "node", 1024.0) for name in _SIZES.values()),
            *(Channel(name, "1", "counter", "node") for name in _EVENTS.values()),
        )

    def read(self) -> list[int]:
        """Read both files."""
        sizes, events = self._sizes.read(), self._events.read()
        values = [number_after(sizes, key) for key in _SIZE_KEYS]
        values += [number_after(events, key) for key in _EVENT_KEYS]
        return values

    def close(self) -> None:
        """Close what was opened."""
        self._sizes.close()
        self._events.close()
