"""Read how many errors each memory controller corrected, and could not correct.

Source: kernel documentation, admin-guide/ras.rst.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.collect.open_files import NumberFiles
from harness.collect.sampler import Observed
from harness.store.samples.samples_format import Channel

HZ = 2.0
BLOCKS = False


def open(observed: Observed) -> NumberFiles:  # noqa: A001 - the contract's name
    """Open the counters of each controller."""
    parent = observed.root / "sys/devices/system/edac/mc"
    return NumberFiles(_counters(parent), "memory controller that counts errors")


def _counters(parent: Path) -> Iterator[tuple[Path, Channel]]:
    for folder in sorted(parent.glob("mc[0-9]*")):
        for file, name in (("ce_count", "corrected"), ("ue_count", "uncorrected")):
            meaning = "since the counters were reset"
            scope = f"memory:{folder.name}"
            path = folder / file
            if path.exists():
                yield path, Channel(f"edac.{name}", "1", "gauge", scope, meaning=meaning)
