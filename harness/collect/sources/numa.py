"""Read each NUMA node's memory; a node without cores is MCDRAM or HBM in flat mode.

Source: kernel documentation, admin-guide/mm/numaperf.rst and numastat.rst; on Knights Landing and
Xeon Max the fast memory of flat mode is such a node.
"""

from __future__ import annotations

from harness.collect.open_files import hold, number_after
from harness.collect.sampler import Observed
from harness.errors import Unavailable
from harness.machine.small_files import read_small
from harness.store.samples.samples_format import Channel

HZ = 1.0
BLOCKS = False

_SIZES = {
    b"MemTotal": "total",
    b"MemFree": "free",
    b"MemUsed": "used",
    b"FilePages": "file-pages",
    b"AnonPages": "anonymous",
}
_COUNTS = {b"numa_hit": "hit", b"numa_miss": "miss", b"numa_foreign": "foreign"}


def open(observed: Observed) -> Numa:  # noqa: A001 - the contract's name
    """Open the source."""
    return Numa(observed)


class Numa:
    """Sizes and page placements of each node."""

    lasts = True

    def __init__(self, observed: Observed) -> None:
        parent = observed.root / "sys/devices/system/node"
        folders = sorted(parent.glob("node[0-9]*"), key=lambda one: int(one.name[4:]))
        if not folders:
            raise Unavailable("this kernel shows no NUMA nodes")
        self._sizes = [hold(folder / "meminfo") for folder in folders]
        self._counts = [hold(folder / "numastat") for folder in folders]
        channels = []
        for folder in folders:
            scope = f"numa:{folder.name[4:]}"
            cpus = folder / "cpulist"
            bare = cpus.is_file() and not read_small(cpus)
            meaning = "memory without cores: MCDRAM, HBM or the like" if bare else ""
            channels += [
                Channel(f"numa.{name}", "bytes", "gauge", scope, 1024.0, meaning=meaning)
                for name in _SIZES.values()
            ]
            channels += [
                Channel(f"numa.{name}", "1", "counter", scope, meaning="pages placed")
                for name in _COUNTS.values()
            ]
        self.channels = tuple(channels)

    def read(self) -> list[int]:
        """Read every node."""
        values: list[int] = []
        for sizes, counts in zip(self._sizes, self._counts, strict=True):
            # "Node 0 MemTotal:       24684084 kB", and "numa_hit 5"
            amounts, counted = sizes.read(), counts.read()
            values += [number_after(amounts, b" " + name + b":") for name in _SIZES]
            values += [number_after(counted, name + b" ") for name in _COUNTS]
        return values

    def close(self) -> None:
        """Close what was opened."""
        for file in (*self._sizes, *self._counts):
            file.close()
