"""Read InfiniBand and Omni-Path ports from sysfs.

Source: kernel documentation, ABI/stable/sysfs-class-infiniband. The data counters there count words
of four bytes; Omni-Path's driver (hfi1) shows the same names.
"""

from __future__ import annotations

from harness.collect.open_files import Held
from harness.collect.sampler import Observed
from harness.errors import Unavailable
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


def open(observed: Observed) -> Fabric:  # noqa: A001 - the contract's name
    """Open the source."""
    return Fabric(observed)


class Fabric:
    """Counters of each port."""

    lasts = True

    def __init__(self, observed: Observed) -> None:
        self._files: list[Held] = []
        channels = []
        parent = observed.root / "sys/class/infiniband"
        for folder in sorted(parent.glob("*/ports/*/counters")):
            adapter, port = folder.parents[2].name, folder.parent.name
            for file, (name, unit, scale) in _COUNTERS.items():
                try:
                    self._files.append(Held(folder / file))
                except OSError:
                    continue  # not every adapter counts everything
                scope = f"fabric:{adapter}/{port}"
                channels.append(Channel(f"fabric.{name}", unit, "counter", scope, scale))
        if not channels:
            raise Unavailable("this machine shows no InfiniBand or Omni-Path adapter")
        self.channels = tuple(channels)

    def read(self) -> list[int]:
        """Read every counter."""
        return [file.number() for file in self._files]

    def close(self) -> None:
        """Close what was opened."""
        for file in self._files:
            file.close()
