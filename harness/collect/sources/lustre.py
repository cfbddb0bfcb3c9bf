"""Read what a Lustre client moved, where its statistics may be read.

Source: Lustre operations manual, "Monitoring a Lustre File System". A line of ``llite.*.stats`` is
``read_bytes 12 samples [bytes] 4096 1048576 9437184``: count, unit, least, most, sum.
"""

from __future__ import annotations

from pathlib import Path

from harness.collect.open_files import hold
from harness.collect.sampler import Observed
from harness.errors import Unavailable
from harness.store.samples.samples_format import Channel

HZ = 1.0
BLOCKS = True

_PLACES = ("proc/fs/lustre/llite", "sys/kernel/debug/lustre/llite")
_SUMS = {b"read_bytes": "read", b"write_bytes": "written"}
_COUNTS = {
    b"read_bytes": "reads",
    b"write_bytes": "writes",
    b"open": "opens",
    b"close": "closes",
    b"getattr": "getattrs",
    b"fsync": "fsyncs",
}


def open(observed: Observed) -> Lustre:  # noqa: A001 - the contract's name
    """Open the source."""
    return Lustre(observed)


class Lustre:
    """Totals of each mounted Lustre file system."""

    def __init__(self, observed: Observed) -> None:
        self._files = [hold(path) for path in _stats(observed.root)]
        if not self._files:
            raise Unavailable("no Lustre file system is mounted, or its statistics are hidden")
        channels = []
        for file in self._files:
            scope = f"lustre:{Path(file.path).parent.name}"
            channels += [
                Channel(f"lustre.{name}", "bytes", "counter", scope) for name in _SUMS.values()
            ]
            channels += [
                Channel(f"lustre.{name}", "1", "counter", scope) for name in _COUNTS.values()
            ]
        self.channels = tuple(channels)

    def read(self) -> list[int]:
        """Read every client's totals; an operation that never happened is not listed."""
        values: list[int] = []
        for file in self._files:
            lines = {
                fields[0]: fields for fields in map(bytes.split, file.read().splitlines()) if fields
            }
            values += [int(lines[name][6]) if name in lines else 0 for name in _SUMS]
            values += [int(lines[name][1]) if name in lines else 0 for name in _COUNTS]
        return values

    def close(self) -> None:
        """Close what was opened."""
        for file in self._files:
            file.close()


def _stats(root: Path) -> list[Path]:
    for place in _PLACES:
        try:
            found = sorted((root / place).glob("*/stats"))
        except PermissionError:
            continue
        if found:
            return found
    return []
