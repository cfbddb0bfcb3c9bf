"""Turn a node's recording into timelines: like quantities of many devices together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.analysis.evidence import Channel, Mark, Timeline
from harness.store.samples.recording import Recording
from harness.verdicts.hardware_use import BUSY

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_GIB, _MB = 2.0**30, 1e6
_RATES = (
    ("disk.read", "read"),
    ("disk.written", "written"),
    ("net.received", "received"),
    ("net.sent", "sent"),
    ("fabric.received", "received"),
    ("fabric.sent", "sent"),
    ("lustre.read", "read"),
    ("lustre.written", "written"),
    ("gpu.pcie.received", "PCIe in"),
    ("gpu.pcie.sent", "PCIe out"),
    ("gpu.nvlink.received", "NVLink in"),
    ("gpu.nvlink.sent", "NVLink out"),
)
_LOUD = 1e5
"""Bytes per second that a device must have reached to be drawn."""


@dataclass(frozen=True)
class RecordingTitle:
    """The title of a recording and the file that it was read from."""

    name: str
    source: str


def timelines(
    recording: Recording, place: RecordingTitle, marks: tuple[Mark, ...], zero_ns: int
) -> Iterator[Timeline]:
    """Make one timeline for each kind of quantity and each rate of reading."""
    drawings = (
        ("cores busy", "%", 100.0, _cores(recording)),
        ("GPUs: any kernel ran", "%", 100.0, _gauges(recording, "gpu.utilisation", 100.0)),
        ("waiting for a resource", "%", 100.0, _pressure(recording)),
        ("memory", "GiB", None, _memory(recording)),
        ("moved", "MB/s", None, _moved(recording)),
        ("power", "W", None, _power(recording)),
    )
    for title, unit, high, lines in drawings:
        periods = sorted({line.period_s for line in lines})
        for period_s in periods:
            every = f", every {period_s:.3g} s" if len(periods) > 1 else ""
            channels = [_shifted(one, zero_ns / 1e9) for one in lines if one.period_s == period_s]
            values = (value for one in channels for value in one.values)
            top = high or max((value for value in values if math.isfinite(value)), default=0.0)
            yield Timeline(
                title=f"{title}{every}",
                unit=unit,
                low=0.0,
                high=_rounded(top),
                channels=tuple(channels),
                interval_s=period_s,
                marks=marks,
                source=place.source,
                recording=place.name,
            )


@dataclass(frozen=True)
class _Line:
    """One device's readings, at times of its node's clock."""

    name: str
    times_s: Floats
    values: Floats
    period_s: float


def _shifted(line: _Line, zero_s: float) -> Channel:
    """Count time from the trial's first phase in whole ticks; mark where readings were missed."""
    import numpy as np

    nearest = np.round((line.times_s - zero_s) / line.period_s)
    # the last reading of a trial comes before its tick: where two would share one, it keeps its own
    count = np.arange(len(nearest))
    ticks = np.maximum.accumulate(nearest - count) + count if len(nearest) else nearest
    since = np.where(ticks - nearest <= 1, ticks, nearest) * line.period_s
    wide = np.flatnonzero(np.diff(since) > 1.9 * line.period_s)
    gaps = tuple((float(since[at]), float(since[at + 1])) for at in wide)
    return Channel(line.name, since.tolist(), line.values.tolist(), gaps)


def _rounded(top: float) -> float:
    """Round the end of a scale up to two figures."""
    if top <= 0:
        return 1.0
    step = 10.0 ** (math.floor(math.log10(top)) - 1)
    return math.ceil(top / step) * step


def _cores(recording: Recording) -> list[_Line]:
    import numpy as np

    lines = []
    for first in recording.named("cpu.user"):
        scope = first.channel.scope
        parts = [recording.find(scope, name) for name in BUSY]
        known = [part for part in parts if part is not None]
        times, total = known[0].rates()
        for part in known[1:]:
            total = total + part.rates()[1]
        percent = np.clip(100.0 * total, 0.0, 100.0)
        lines.append(_Line(scope.replace(":", " "), times, percent, first.period_ns / 1e9))
    return lines


def _pressure(recording: Recording) -> list[_Line]:
    names = (
        ("cpu.some", "a core"),
        ("memory.some", "memory"),
        ("io.some", "storage"),
    )
    lines = []
    for name, title in names:
        series = recording.find("node", f"pressure.{name}")
        if series is not None:
            times, rates = series.rates()
            lines.append(_Line(title, times, 100.0 * rates, series.period_ns / 1e9))
    return lines


def _gauges(recording: Recording, name: str, factor: float) -> list[_Line]:
    return [
        _Line(one.channel.scope, one.times_ns / 1e9, factor * one.values, one.period_ns / 1e9)
        for one in recording.named(name)
        if len(one.raw)
    ]


def _memory(recording: Recording) -> list[_Line]:
    lines = []
    total, left = (recording.find("node", f"memory.{name}") for name in ("total", "available"))
    if total is not None and left is not None:
        used = (total.values - left.values) / _GIB
        lines.append(_Line("node", total.times_ns / 1e9, used, total.period_ns / 1e9))
    for name in ("rank.resident", "gpu.memory-used"):
        lines += _gauges(recording, name, 1 / _GIB)
    return lines


def _moved(recording: Recording) -> list[_Line]:
    lines = []
    for name, title in _RATES:
        for series in recording.named(name):
            times, rates = series.rates()
            if len(rates) and float(rates.max()) > _LOUD:
                label = f"{series.channel.scope.replace(':', ' ')} {title}"
                lines.append(_Line(label, times, rates / _MB, series.period_ns / 1e9))
    return lines


def _power(recording: Recording) -> list[_Line]:
    candidates = (
        _gauges(recording, f"gpu.power{which}", 1.0) for which in (".average", ".instant", "")
    )
    lines = next(filter(None, candidates), [])
    for series in recording.named("energy"):
        times, rates = series.rates()
        lines.append(_Line(series.channel.scope, times, rates, series.period_ns / 1e9))
    return lines
