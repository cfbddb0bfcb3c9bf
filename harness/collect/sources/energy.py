"""Read RAPL's energy counters of packages, cores and memory.

Source: kernel documentation, power/powercap/powercap.rst. The counters wrap, some within a minute
of full load; the header says where. Since CVE-2020-8694 only root may read them.
"""

from __future__ import annotations

from harness.collect.open_files import Held
from harness.collect.sampler import Observed
from harness.errors import Unavailable
from harness.machine.small_files import read_small
from harness.store.samples.samples_format import Channel

HZ = 1.0
BLOCKS = False


def open(observed: Observed) -> Energy:  # noqa: A001 - the contract's name
    """Open the source."""
    return Energy(observed)


class Energy:
    """Microjoules of each domain."""

    lasts = True

    def __init__(self, observed: Observed) -> None:
        self._files: list[Held] = []
        channels = []
        reason = "this machine shows no RAPL energy counters"
        parent = observed.root / "sys/class/powercap"
        # Some chips show the same package over memory (intel-rapl-mmio:0) as well as by registers.
        found = parent.glob("intel-rapl:*/energy_uj")
        for path in sorted(found) or sorted(parent.glob("*rapl*/energy_uj")):
            folder = path.parent
            try:
                self._files.append(Held(path))
            except OSError as problem:
                reason = f"{path}: {problem.strerror}"
                continue
            domain = read_small(folder / "name") or "domain"
            most = read_small(folder / "max_energy_range_uj")
            channels.append(
                Channel(
                    "energy",
                    "J",
                    "counter",
                    f"rapl:{folder.name.partition(':')[2]}/{domain}",
                    1e-6,
                    # from 0 up to and with the largest number
                    wraps=int(most) + 1 if most else None,
                    meaning="of the whole package, whoever used it",
                )
            )
        if not channels:
            raise Unavailable(reason)
        self.channels = tuple(channels)

    def read(self) -> list[int]:
        """Read every domain."""
        return [file.number() for file in self._files]

    def close(self) -> None:
        """Close what was opened."""
        for file in self._files:
            file.close()
