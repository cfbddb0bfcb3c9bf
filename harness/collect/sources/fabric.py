"""Read InfiniBand and Omni-Path ports from sysfs.

Source: kernel documentation, ABI/stable/sysfs-class-infiniband. The data counters there count words
of four bytes; Omni-Path's driver (hfi1) shows the same names.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.collect.open_files import NumberFiles
from harness.collect.sampler import Observed
from harness.store.samples.samples_format import Channel

HZ = 1.0
BLOCKS = True  # some adapters ask their firmware

_COUNTERS = {
    "port_rcv_data": ("received", "bytes", 4.0),
    "port_xmit_data": ("sent", "bytes", 4.0),
    "port_rcv_packets": ("packets-in", "1", 1.0),
    "port_xmit_packets": ("packets-out", "1", 1.0),
    "port_xmit_wait": ("send-wait", "1", 1.0),
    "symbol_error": ("symbol-errors", "1", 1.0),
    "port_rcv_errors": ("errors-in", "1", 1.0),
}


def open(observed: Observed) -> NumberFiles:  # noqa: A001 - the contract's name
    """Open the counters of each port."""
    parent = observed.root / "sys/class/infiniband"
    return NumberFiles(_counters(parent), "InfiniBand or Omni-Path adapter")


def _counters(parent: Path) -> Iterator[tuple[Path, Channel]]:
    for folder in sorted(parent.glob("*/ports/*/counters")):
        scope = f"fabric:{folder.parents[2].name}/{folder.parent.name}"
        for file, (name, unit, scale) in _COUNTERS.items():
            path = folder / file
            if path.exists():  # not every adapter counts everything
                yield path, Channel(f"fabric.{name}", unit, "counter", scope, scale)
