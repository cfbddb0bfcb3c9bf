"""The collector's own readings of the GPUs against `nvidia-smi`, taken at the same time.

Both read the same driver, at moments that differ: what nvidia-smi says should lie within what the
collector read shortly before and after, give or take what a value moves in between.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from harness.store.samples.recording import Recording, Series, read_recording
from tests.gpu.answer import Answer, Broken
from tests.gpu.day import SCRIPTS, Day
from tests.gpu.nvidia_smi import Reading, number

LIMIT_S = 240.0
_SECONDS = 8.0
_LOAD_S = 120
"""When the load ends by itself."""
_AROUND_NS = 1_200_000_000
"""What moves slowly is read twice a second, by turns of the GPUs."""
_ENOUGH = 0.8
"""Share of readings that must agree."""
_ENERGY = 0.1


@dataclass(frozen=True)
class Quantity:
    """What both read: fields of nvidia-smi that add up, and a channel of the collector."""

    name: str
    fields: tuple[str, ...]
    channel: str
    scale: float
    """From nvidia-smi's unit to the channel's."""
    slack: float
    """By how much both may differ, in the channel's unit."""


QUANTITIES = (
    # NVML's older call, which the collector makes, counts what the driver keeps for itself as used.
    Quantity("memory used", ("memory.used", "memory.reserved"), "gpu.memory-used", 2**20, 2**26),
    Quantity("memory in all", ("memory.total",), "gpu.memory-total", 2**20, 2**20),
    Quantity("kernels ran", ("utilization.gpu",), "gpu.utilisation", 0.01, 0.1),
    Quantity("memory was busy", ("utilization.memory",), "gpu.memory-busy", 0.01, 0.1),
    Quantity("clock", ("clocks.sm",), "gpu.clock.sm", 1e6, 30e6),
    Quantity("memory clock", ("clocks.mem",), "gpu.clock.memory", 1e6, 10e6),
    Quantity("temperature", ("temperature.gpu",), "gpu.temperature", 1.0, 2.0),
    Quantity("power over a second", ("power.draw.average",), "gpu.power.average", 1.0, 15.0),
    Quantity("power of a moment", ("power.draw.instant",), "gpu.power.instant", 1.0, 15.0),
    Quantity("power", ("power.draw",), "gpu.power", 1.0, 15.0),
)
FIELDS = tuple(dict.fromkeys(field for one in QUANTITIES for field in one.fields))


@dataclass(frozen=True)
class Row:
    """One quantity of one GPU."""

    gpu: str
    quantity: str
    readings: int
    agreeing: int
    distance: float | None
    """Median of how far nvidia-smi's values lie outside what the collector read around them."""
    ours: float | None
    theirs: float | None
    """Medians, in the channel's unit."""
    unit: str

    @property
    def is_fault(self) -> bool:
        """Tell whether nvidia-smi says something else, or something where we say nothing."""
        return self.readings > 0 and self.agreeing < _ENOUGH * self.readings

    def __str__(self) -> str:
        name = f"{self.gpu[:12]} {self.quantity}"
        if not self.readings:
            return f"{name}: nvidia-smi does not tell"
        if self.ours is None or self.theirs is None:
            return f"{name}: nvidia-smi tells it, the collector does not"
        return (
            f"{name}: {self.agreeing} of {self.readings} agree; collector {self.ours:.6g}, "
            f"nvidia-smi {self.theirs:.6g} {self.unit} (medians), {self.distance:.3g} apart"
        )


def read(day: Day) -> Answer:
    """Read idle GPUs, then, where a framework can keep one busy, under load."""
    uuids = sorted(day.gpus.gpus)  # or say that there is no nvidia-smi
    lines, measured, faults = [f"{len(uuids)} GPUs"], {}, []
    usable = () if day.is_dry else day.frameworks()[0]
    if not usable:
        lines.append("not read under load: no framework here has a GPU")
    for name in ("idle", *(["under load"] if usable else [])):
        try:
            with _load(day, usable[0]) if name == "under load" else nullcontext():
                recording, readings, unknown = _both(day, name)
        except Broken as why:
            faults.append(f"{name}: {why}")
            continue
        rows = [*compare(recording, readings), *energy(recording, readings)]
        lines += [f"{name}: {row}" for row in rows]
        lines += [f"{name}: this nvidia-smi does not know {field}" for field in unknown]
        faults += [f"{name}: {row}" for row in rows if row.is_fault]
        measured[name] = [asdict(row) for row in rows]
    return Answer(tuple(lines), measured, tuple(faults))


def compare(recording: Recording, readings: Sequence[Reading]) -> list[Row]:
    """Hold every value of nvidia-smi to what the collector read around it."""
    rows = []
    for uuid in readings[0].gpus:
        for one in QUANTITIES:
            series = recording.find(f"gpu:{uuid}", one.channel)
            if series is not None:
                rows.append(_row(uuid, one, series, readings))
    return rows


def energy(recording: Recording, readings: Sequence[Reading]) -> list[Row]:
    """Hold the energy counter's growth to the mean power that nvidia-smi says."""
    rows = []
    for uuid in readings[0].gpus:
        series = recording.find(f"gpu:{uuid}", "gpu.energy")
        told = [_value(reading.gpus.get(uuid, {}), ("power.draw",)) for reading in readings]
        known = [power for power in told if power is not None]
        if series is None or not known:
            continue
        theirs = sum(known) / len(known)
        ours = series.mean(readings[0].before_ns, readings[-1].after_ns)
        distance = None if ours is None else abs(ours - theirs)
        agrees = distance is not None and distance <= max(15.0, _ENERGY * theirs)
        rows.append(Row(uuid, "mean power by energy", 1, int(agrees), distance, ours, theirs, "W"))
    return rows


def _row(uuid: str, one: Quantity, series: Series, readings: Sequence[Reading]) -> Row:
    distances, theirs, ours, told = [], [], [], 0
    for reading in readings:
        value = _value(reading.gpus.get(uuid, {}), one.fields)
        if value is None:
            continue
        told += 1
        near = _near(series, reading)
        if len(near):
            value *= one.scale
            distances.append(max(0.0, float(near.min()) - value, value - float(near.max())))
            theirs.append(value)
            ours.append(float(np.median(near)))
    return Row(
        gpu=uuid,
        quantity=one.name,
        readings=told,
        agreeing=sum(distance <= one.slack for distance in distances),
        distance=median(distances) if distances else None,
        ours=median(ours) if ours else None,
        theirs=median(theirs) if theirs else None,
        unit=series.channel.unit,
    )


def _near(series: Series, reading: Reading) -> Any:
    times, values = series.times_ns, series.values
    begin, end = reading.before_ns - _AROUND_NS, reading.after_ns + _AROUND_NS
    return values[(times >= begin) & (times <= end) & np.isfinite(values)]


def _value(gpu: Mapping[str, str], fields: Sequence[str]) -> float | None:
    """Add up fields; the first one must be known, as older drivers have no others."""
    first, *others = (number(gpu.get(field)) for field in fields)
    return None if first is None else first + sum(one or 0.0 for one in others)


def _both(day: Day, name: str) -> tuple[Recording, list[Reading], list[str]]:
    """Let the collector observe the process that asks nvidia-smi."""
    samples, told = (day.work / f"nvml-{name.replace(' ', '-')}.{end}" for end in ("bin", "json"))
    samples.unlink(missing_ok=True)
    seconds = 3.0 if day.is_dry else _SECONDS
    done = day.bakeoff(
        *("collect", "--output", str(samples), "--rate", "all=0", "--rate", "nvml=10", "--"),
        *(sys.executable, "-m", "tests.gpu.readings", str(told), str(seconds), *FIELDS),
        limit_s=LIMIT_S / 2,
    )
    if done.code:
        raise Broken(f"bakeoff collect: {done.last}")
    recording = read_recording(samples)
    if recording is None:
        raise Broken(f"bakeoff collect: {done.last}")
    if unread := dict(recording.unread()).get("nvml"):
        raise Broken(f"the collector does not read NVML: {unread}")
    seen = json.loads(Path(told).read_text(encoding="utf-8"))
    readings = [Reading(**one) for one in seen["readings"]]
    begun = min((int(one.before_ns[0]) for one in recording.series if len(one.raw)), default=None)
    if begun is None:
        raise Broken("the collector opened NVML and read nothing")
    both = [one for one in readings if one.before_ns >= begun]  # opening NVML takes its time
    if not both:
        raise Broken("nvidia-smi was never read while the collector was")
    return recording, both, seen["unknown"]


@contextmanager
def _load(day: Day, framework: str) -> Iterator[None]:
    argv = [day.python, str(SCRIPTS / "load.py"), framework, str(_LOAD_S)]
    with subprocess.Popen(
        argv,
        env=day.rank_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            if process.stdout.readline() != "busy\n":
                raise Broken(f"{framework} put no load on the GPU")
            yield
        finally:
            process.kill()
