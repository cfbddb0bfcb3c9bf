"""Read the machine's thermometers: hwmon's, else the thermal zones.

Source: kernel documentation, hwmon/sysfs-interface.rst and driver-api/thermal/sysfs-api.rst.
"""

from __future__ import annotations

from pathlib import Path

from harness.collect.open_files import NumberFiles
from harness.collect.sampler import Observed
from harness.machine.small_files import read_small
from harness.store.samples.samples_format import Channel

HZ = 0.5
BLOCKS = True  # some sensors sit behind a slow bus


def open(observed: Observed) -> NumberFiles:  # noqa: A001 - the contract's name
    """Open the thermometers: thousandths of a degree, each as its driver names it."""
    found = (
        (path, Channel("temperature", "°C", "gauge", f"sensor:{name}", 1e-3))
        for path, name in _sensors(observed.root)
    )
    return NumberFiles(found, "thermometer")


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
