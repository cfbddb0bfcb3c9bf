"""Read the machine's thermometers: hwmon's, else the thermal zones.

Source: kernel documentation, hwmon/sysfs-interface.rst and driver-api/thermal/sysfs-api.rst.
"""

from __future__ import annotations

from pathlib import Path

from harness.collect.open_files import Held
from harness.collect.sampler import Observed
from harness.errors import Unavailable
from harness.machine.small_files import read_small
from harness.store.samples.samples_format import Channel

HZ = 0.5
BLOCKS = True  # some sensors sit behind a slow bus


def open(observed: Observed) -> Temperature:  # noqa: A001 - the contract's name
    """Open the source."""
    return Temperature(observed)


class Temperature:
    """Thousandths of a degree, each with the name that its driver gives."""

    lasts = True

    def __init__(self, observed: Observed) -> None:
        sensors = list(_sensors(observed.root))
        self._files: list[Held] = []
        channels = []
        for path, name in sensors:
            try:
                self._files.append(Held(path))
            except OSError:
                continue  # a sensor that only its owner may read
            channels.append(Channel("temperature", "°C", "gauge", f"sensor:{name}", 1e-3))
        if not channels:
            raise Unavailable("this machine shows no thermometer")
        self.channels = tuple(channels)

    def read(self) -> list[int]:
        """Read every sensor."""
        return [file.number() for file in self._files]

    def close(self) -> None:
        """Close what was opened."""
        for file in self._files:
            file.close()


def _sensors(root: Path) -> list[tuple[Path, str]]:
    found = []
    for path in sorted((root / "sys/class/hwmon").glob("hwmon*/temp*_input")):
        chip = read_small(path.parent / "name") or path.parent.name
        stem = path.name.removesuffix("_input")
        label = read_small(path.with_name(f"{stem}_label")) or stem
        found.append((path, f"{path.parent.name}/{chip}/{label}"))
    if not found:
        for path in sorted((root / "sys/class/thermal").glob("thermal_zone*/temp")):
            kind = read_small(path.with_name("type")) or "zone"
            found.append((path, f"{path.parent.name}/{kind}"))
    return found
