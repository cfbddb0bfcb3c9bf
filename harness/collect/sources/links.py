"""Read how fast each network link came up, and over how many PCIe lanes its adapter is reached.

A cable or a slot that trained down costs a node half its network, and no counter says so.
Source: kernel documentation, ABI/stable/sysfs-class-infiniband, ABI/testing/sysfs-class-net and
sysfs-bus-pci.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from harness.collect.open_files import OpenFile, gap
from harness.collect.sampler import Observed
from harness.errors import Unavailable
from harness.machine.small_files import read_small
from harness.store.samples.samples_format import UNSUPPORTED, Channel

HZ = 2.0
BLOCKS = True  # some adapters ask their firmware


def open(observed: Observed) -> Links:  # noqa: A001 - the contract's name
    """Open the links that are up."""
    return Links(observed.root / "sys/class")


def _ethernet(text: bytes) -> int:
    """Give bits a second; a link that is down says -1."""
    speed = int(text)
    return speed * 10**6 if speed > 0 else UNSUPPORTED


def _infiniband(text: bytes) -> int:
    """Give bits a second of "100 Gb/sec (4X EDR)"."""
    return round(float(text.split()[0]) * 1e9)


class Links:
    """The speed of each link, and the lanes of its adapter."""

    def __init__(self, parent: Path) -> None:
        self._files: list[tuple[OpenFile, Callable[[bytes], int]]] = []
        self.channels: list[Channel] = []
        for path, channel, meaning in _found(parent):
            try:
                self._files.append((OpenFile(path), meaning))
            except OSError:
                continue  # a file that only root may read
            self.channels.append(channel)
        if not self._files:
            raise Unavailable("this machine shows no link's speed")

    def read(self) -> list[int]:
        """Read each one."""
        values = []
        for file, meaning in self._files:
            try:
                values.append(meaning(file.read()))
            except (OSError, ValueError, IndexError) as problem:
                values.append(gap(problem))  # EINVAL where the link is down
        return values

    def close(self) -> None:
        """Close what was opened."""
        for file, _ in self._files:
            file.close()


def _found(parent: Path) -> Iterator[tuple[Path, Channel, Callable[[bytes], int]]]:
    for card in sorted((parent / "net").glob("*")):
        if (card / "device").exists() and read_small(card / "operstate") == "up":
            yield card / "speed", _speed(card.name), _ethernet
            yield card / "device/current_link_width", _lanes(card.name), int
    for adapter in sorted((parent / "infiniband").glob("*")):
        for port in sorted((adapter / "ports").glob("*")):
            yield port / "rate", _speed(f"{adapter.name}/{port.name}"), _infiniband
        yield adapter / "device/current_link_width", _lanes(adapter.name), int


def _speed(name: str) -> Channel:
    return Channel("link.speed", "bytes/s", "gauge", f"link:{name}", 0.125)


def _lanes(name: str) -> Channel:
    return Channel("link.lanes", "1", "gauge", f"link:{name}")
