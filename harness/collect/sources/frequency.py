"""Read how fast each core runs, and how often heat made it slower.

Source: kernel documentation, admin-guide/pm/cpufreq.rst; Intel's thermal_throttle counters.
"""

from __future__ import annotations

import re
from pathlib import Path

from harness.collect.open_files import OpenFile, hold
from harness.collect.sampler import Observed
from harness.errors import Unavailable
from harness.store.samples.samples_format import NOT_READ, Channel

HZ = 1.0
BLOCKS = False

_LIST_EVERY = 10
"""The list is long and slow to make, and where it is all there is, it hardly ever changes."""
_MHZ = re.compile(rb"^cpu MHz\s*: ([\d.]+)", re.MULTILINE)


def open(observed: Observed) -> Frequency:  # noqa: A001 - the contract's name
    """Open the source."""
    return Frequency(observed)


class Frequency:
    """Clock and throttle counts of each core."""

    def __init__(self, observed: Observed) -> None:
        self._files: list[OpenFile] = []
        self._listed: OpenFile | None = None
        self._readings = 0
        channels: list[Channel] = []
        parent = observed.root / "sys/devices/system/cpu"
        cores = sorted(parent.glob("cpu[0-9]*"), key=lambda one: int(one.name[3:]))
        for core in cores:
            scope = f"core:{core.name[3:]}"
            clock = core / "cpufreq/scaling_cur_freq"
            self._try(channels, clock, Channel("clock", "Hz", "gauge", scope, 1e3))
        for core in cores:
            scope = f"core:{core.name[3:]}"
            for kind in ("core", "package"):
                count = core / f"thermal_throttle/{kind}_throttle_count"
                self._try(channels, count, Channel(f"throttled.{kind}", "1", "counter", scope))
        if not any(channel.name == "clock" for channel in channels):
            channels += self._from_list(observed.root / "proc/cpuinfo")
        self.lasts = self._listed is None  # the list is always read in a trial's first reading
        if not channels:
            raise Unavailable("this machine shows neither clocks nor throttle counts")
        self.channels = tuple(channels)

    def _try(self, channels: list[Channel], path: Path, channel: Channel) -> None:
        try:
            self._files.append(OpenFile(path))
        except OSError:
            return  # what this core does not show is no channel
        channels.append(channel)

    def _from_list(self, path: Path) -> list[Channel]:
        """Fall back to the list of processors, which virtual machines show as well."""
        file = hold(path, many=True)
        count = len(_MHZ.findall(file.read()))
        self._listed = file if count else None
        meaning = "nominal in most virtual machines"
        return [
            Channel("clock", "Hz", "gauge", f"core:{core}", 1e3, meaning=meaning)
            for core in range(count)
        ]

    def read(self) -> list[int]:
        """Read every core."""
        values = [file.number() for file in self._files]
        self._readings += 1
        if self._listed is not None and self._readings % _LIST_EVERY != 1:
            values += [NOT_READ] * (len(self.channels) - len(values))
        elif self._listed is not None:
            frequencies = [int(float(mhz) * 1000) for mhz in _MHZ.findall(self._listed.read())]
            missing = len(self.channels) - len(values) - len(frequencies)
            values += frequencies + [NOT_READ] * missing
        return values[: len(self.channels)]

    def close(self) -> None:
        """Close what was opened."""
        for file in self._files:
            file.close()
        if self._listed is not None:
            self._listed.close()
