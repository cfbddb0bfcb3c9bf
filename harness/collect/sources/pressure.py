"""Read pressure stall information: the time in which tasks waited for a resource.

Source: kernel documentation, accounting/psi.rst. "some": at least one task waited; "full": all did.
"""

from __future__ import annotations

from harness.collect.open_files import OpenFile
from harness.collect.sampler import Observed
from harness.errors import Unavailable
from harness.store.samples.samples_format import UNSUPPORTED, Channel

HZ = 10.0
BLOCKS = False


def open(observed: Observed) -> Pressure:  # noqa: A001 - the contract's name
    """Open the source."""
    return Pressure(observed)


class Pressure:
    """Microseconds of waiting since boot."""

    lasts = True

    def __init__(self, observed: Observed) -> None:
        self._files: dict[str, OpenFile] = {}
        reason = "this kernel keeps no pressure information"
        for name in ("cpu", "memory", "io"):
            try:
                self._files[name] = OpenFile(observed.root / "proc/pressure" / name)
                self._files[name].read()  # psi=0 on the kernel's command line fails only here
            except OSError as problem:
                self._files.pop(name, None)
                reason = f"/proc/pressure/{name}: {problem.strerror}"
        if not self._files:
            raise Unavailable(reason)
        self.channels = tuple(
            Channel(f"pressure.{name}.{kind}", "s", "counter", "node", 1e-6)
            for name in self._files
            for kind in ("some", "full")
        )

    def read(self) -> list[int]:
        """Read all totals."""
        values = []
        for file in self._files.values():
            # "some avg10=0.00 avg60=0.00 avg300=0.00 total=0", and, but for some kernels, "full …"
            _, some, *full = file.read().split(b" total=")
            values.append(int(some.partition(b"\n")[0]))
            values.append(int(full[0]) if full else UNSUPPORTED)
        return values

    def close(self) -> None:
        """Close what was opened."""
        for file in self._files.values():
            file.close()
