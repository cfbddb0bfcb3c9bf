"""Read what each whole disk moved and how long it was busy.

Source: kernel documentation, block/stat.rst. A sector there is 512 bytes on every disk.
"""

from __future__ import annotations

from pathlib import Path

from harness.collect.open_files import held
from harness.collect.sampler import Observed
from harness.store.samples.samples_format import LOST, Channel

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


def _is_made_of_others(path: Path) -> bool:
    """Tell volumes, arrays and the like, whose bytes their disks count already."""
    return path.name.startswith(_NOT_DISKS) or any((path / "slaves").glob("*"))


class Disks:
    """Counters of each disk since boot."""

    def __init__(self, observed: Observed) -> None:
        # Each by its own file: /proc/diskstats sums up every partition and loop device as well.
        disks = sorted((observed.root / "sys/block").glob("*"))
        whole = [path / "stat" for path in disks if not _is_made_of_others(path)]
        self._files = held(whole, "disk")
        names = [Path(file.path).parent.name.replace("!", "/") for file in self._files]
        self.channels = tuple(
            Channel(f"disk.{field}", unit, kind, f"disk:{name}", scale, meaning=meaning)
            for name in names
            for _, field, unit, kind, scale, meaning in _FIELDS
        )

    def read(self) -> list[int]:
        """Read every disk; one that was taken out is lost."""
        values: list[int] = []
        for file in self._files:
            try:
                fields = file.read().split()
                values += [int(fields[at]) for at, *_ in _FIELDS]
            except OSError:
                values += [LOST] * len(_FIELDS)
        return values

    def close(self) -> None:
        """Close what was opened."""
        for file in self._files:
            file.close()
