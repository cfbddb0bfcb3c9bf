"""Read what each network interface sent and received. Source: proc_pid_net(5)."""

from __future__ import annotations

from harness.collect.open_files import hold
from harness.collect.sampler import Observed
from harness.errors import Unavailable
from harness.store.samples.samples_format import LOST, Channel

HZ = 5.0
BLOCKS = False

_FIELDS = (
    (0, "received", "bytes"),
    (1, "packets-in", "1"),
    (2, "errors-in", "1"),
    (3, "dropped-in", "1"),
    (8, "sent", "bytes"),
    (9, "packets-out", "1"),
    (10, "errors-out", "1"),
    (11, "dropped-out", "1"),
)


def open(observed: Observed) -> Network:  # noqa: A001 - the contract's name
    """Open the source."""
    return Network(observed)


class Network:
    """Counters of each interface since it came up."""

    def __init__(self, observed: Observed) -> None:
        self._file = hold(observed.root / "proc/net/dev", many=True)
        known = observed.root / "sys/class/net"
        # Bonds, bridges and VLANs count what the interfaces below them count already.
        self._names = [
            name for name in self._told() if not any((known / name.decode()).glob("lower_*"))
        ]
        if not self._names:
            self._file.close()
            raise Unavailable("this machine shows no network interface")
        self.channels = tuple(
            Channel(f"net.{field}", unit, "counter", f"net:{name.decode()}")
            for name in self._names
            for _, field, unit in _FIELDS
        )

    def _told(self) -> dict[bytes, list[bytes]]:
        lines = (line.partition(b":") for line in self._file.read().splitlines()[2:])
        return {name.strip(): numbers.split() for name, _, numbers in lines}

    def read(self) -> list[int]:
        """Read every interface."""
        counters = self._told()
        values: list[int] = []
        for name in self._names:
            fields = counters.get(name)
            values += [LOST if fields is None else int(fields[at]) for at, *_ in _FIELDS]
        return values

    def close(self) -> None:
        """Close what was opened."""
        self._file.close()
