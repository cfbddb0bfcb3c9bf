"""This file reads what each whole disk moved and how long it was busy.

Source: kernel documentation, admin-guide/iostats.rst. A sector there is 512 bytes on every disk.
"""

from __future__ import annotations

from harness.collect.held import hold
from harness.collect.sampler import Observed
from harness.errors import Unavailable
from harness.store.samples import LOST, Channel

HZ = 5.0
BLOCKS = False

_NOT_DISKS = ("loop", "ram", "zram", "sr", "fd")
_FIELDS = (
    (0, "reads", "1", "counter", 1.0, ""),
    (2, "read", "bytes", "counter", 512.0, ""),
    (3, "reading", "s", "counter", 1e-3, "summed over requests"),
    (4, "writes", "1", "counter", 1.0, ""),
    (6, "written", "bytes", "counter", 512.0, ""),
    (7, "writing", "s", "counter", 1e-3, "summed over requests"),
    (8, "in-flight", "1", "gauge", 1.0, ""),
    (9, "busy", "s", "counter", 1e-3, "any request open; no measure of saturation on SSDs"),
)


def open(observed: Observed) -> Disks:  # noqa: A001 - the contract's name
    """Open the source."""
    return Disks(observed)


class Disks:
    """Counters of each disk since boot."""

    def __init__(self, observed: Observed) -> None:
        self._file = hold(observed.root / "proc/diskstats", many=True)
        whole = {path.name.replace("!", "/") for path in (observed.root / "sys/block").glob("*")}
        self._names = [
            name
            for name in map(bytes.decode, self._told())
            if name in whole and not name.startswith(_NOT_DISKS)
        ]
        if not self._names:
            self._file.close()
            raise Unavailable("this machine shows no disk")
        self.channels = tuple(
            Channel(f"disk.{field}", unit, kind, f"disk:{name}", scale, meaning=meaning)
            for name in self._names
            for _, field, unit, kind, scale, meaning in _FIELDS
        )

    def _told(self) -> dict[bytes, list[bytes]]:
        lines = (line.split() for line in self._file.read().splitlines())
        return {line[2]: line[3:] for line in lines}

    def read(self) -> list[int]:
        """Read every disk."""
        told = self._told()
        values: list[int] = []
        for name in self._names:
            fields = told.get(name.encode())
            values += [LOST if fields is None else int(fields[at]) for at, *_ in _FIELDS]
        return values

    def close(self) -> None:
        """Close what was opened."""
        self._file.close()
