"""Read RAPL's energy counters of packages, cores and memory.

Source: kernel documentation, power/powercap/powercap.rst. The counters wrap, some within a minute
of full load; the header says where. Since CVE-2020-8694 only root may read them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.collect.open_files import NumberFiles
from harness.collect.sampler import Observed
from harness.machine.small_files import read_small
from harness.store.samples.samples_format import Channel

HZ = 1.0
BLOCKS = False


def open(observed: Observed) -> NumberFiles:  # noqa: A001 - the contract's name
    """Open the microjoules of each domain."""
    return NumberFiles(_domains(observed.root / "sys/class/powercap"), "RAPL energy counters")


def _domains(parent: Path) -> Iterator[tuple[Path, Channel]]:
    # Some chips show the same package over memory (intel-rapl-mmio:0) as well as by registers.
    found = parent.glob("intel-rapl:*/energy_uj")
    for path in sorted(found) or sorted(parent.glob("*rapl*/energy_uj")):
        folder = path.parent
        domain = read_small(folder / "name") or "domain"
        most = read_small(folder / "max_energy_range_uj")
        yield (
            path,
            Channel(
                "energy",
                "J",
                "counter",
                f"rapl:{folder.name.partition(':')[2]}/{domain}",
                1e-6,
                # from 0 up to and with the largest number
                wraps=int(most) + 1 if most else None,
                meaning="of the whole package, whoever used it",
            ),
        )
