"""This file turns what the collector recorded into evidence: timelines, phases, what was not read.

Timelines are of one trial per workload and cell shown: the one nearest its cell's median.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.store.dataset import Dataset
from harness.store.layout import TrialName, TrialPaths
from harness.store.recording import Recording, Series, read_recording
from harness.store.results import CellResult, Estimate, Results, TrialResult
from harness.store.usage import BUSY
from reports.by_phase import by_phase
from reports.evidence import Channel, Energy, Evidence, Mark, PhaseUse, Timeline, Unread
from reports.input import ladders
from reports.roof import roof

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MOST_TRIALS = 4
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


def evidence(dataset: Dataset, results: Results) -> Evidence:
    """Gather everything that was recorded beside the estimates."""
    timelines: list[Timeline] = []
    unread: dict[Unread, None] = {}
    phases: list[PhaseUse] = []
    for cell, trial in _chosen(results):
        axis = _Axis(dataset, trial)
        for node, recording in _recordings(Path(trial.directory)):
            marks, first_ns = _phases(dataset, cell, trial)
            zero_ns = axis.on(node, first_ns)
            timelines += [
                replace(one, clock_bound_s=axis.bound_s(node))
                for one in _timelines(cell, trial, node, recording, marks, zero_ns)
            ]
            name = f"{cell.label}, block {trial.block}"
            phases += by_phase(name, node, recording, marks, zero_ns)
            for note in recording.noted("unavailable"):
                unread[Unread(node, note["source"], note["reason"])] = None
    told = (_energy(cell) for cell in results.cells)
    energy = tuple(one for one in told if one is not None)
    ceilings, points = roof(results)
    return Evidence(
        timelines=tuple(timelines),
        energy=energy,
        unread=tuple(unread),
        phases=tuple(phases),
        ceilings=ceilings,
        roof_points=points,
        ladders=ladders(results),
    )


class _Axis:
    """The first rank's time axis, on which the marks of all drawings of a trial lie."""

    def __init__(self, dataset: Dataset, trial: TrialResult) -> None:
        (record,) = (one for one in dataset.trials if str(one.directory) == trial.directory)
        self._clocks = record.clocks
        self._first = next((rank.host for rank in record.ranks if rank.rank == 0), "")

    def on(self, node: str, first_ns: int) -> int:
        """Say what a node's clock showed at a moment of the first rank's."""
        return round(self._clocks.node_ns(node, self._clocks.host_ns(self._first, first_ns)))

    def bound_s(self, node: str) -> float | None:
        """Say how far a node's readings may be from where they lie on this axis."""
        return self._clocks.bound_s((self._first, node))


_METERS = {
    "power, from its energy counter": "NVML's energy counter",
    "power, 1 s average": "NVML, averages over a second",
    "power": "RAPL energy counters",
}


def _energy(cell: CellResult) -> Energy | None:
    """Split a cell's power by part; None where nothing was metered."""
    total = cell.utilisation.get("power_w")
    if total is None or cell.rate is None:
        return None
    parts: dict[str, float] = {}
    meters: dict[str, None] = {}
    metered = [one for one in cell.readings if one.unit == "W" and one.name in _METERS]
    for reading in metered:
        part = _part(reading.scope)
        better = reading.name != "power, 1 s average" or not any(
            one.scope == reading.scope and one.name == "power, from its energy counter"
            for one in metered
        )
        if part is not None and better:
            parts[part] = parts.get(part, 0.0) + reading.mean
            meters[_METERS[reading.name]] = None
    interval = cell.rate.interval
    if interval is not None:
        interval = replace(interval, low=interval.low / total, high=interval.high / total)
    unit = f"{cell.unit} per joule"
    work = Estimate(cell.rate.value / total, unit, cell.rate.n, interval)
    source = f"{', '.join(meters)}; nothing else in the machine is in it."
    return Energy(cell.label, tuple(parts.items()), work, source)


def _part(scope: str) -> str | None:
    """Name what a meter covers; None for a part of what another one covers already."""
    if scope.startswith("gpu:"):
        return "GPU"
    domain = scope.rpartition("/")[2]
    if domain.startswith("package"):
        return "CPU package"
    return "memory" if domain == "dram" else None


def _chosen(results: Results) -> Iterator[tuple[CellResult, TrialResult]]:
    """Choose trials to draw: of each workload's fastest cell first, then of the others."""
    of: dict[str, list[CellResult]] = {}
    for cell in results.cells:
        of.setdefault(cell.workload, []).append(cell)
    most = max(map(len, of.values()), default=0)
    ranked = [cells[place] for place in range(most) for cells in of.values() if place < len(cells)]
    drawn = 0
    for cell in ranked:
        trial = _typical(cell)
        if trial is not None and drawn < MOST_TRIALS:
            drawn += 1
            yield cell, trial


def _typical(cell: CellResult) -> TrialResult | None:
    """Give the trial nearest the median; of a cell without any that counts, the last observed."""
    observed = [trial for trial in cell.trials if trial.readings]
    counted = [trial for trial in observed if trial.counted and trial.rate is not None]
    if cell.rate is None or not counted:
        return observed[-1] if observed else None
    median = cell.rate.value
    return min(counted, key=lambda trial: abs((trial.rate or 0.0) - median))


def _recordings(directory: Path) -> Iterator[tuple[str, Recording]]:
    for path in sorted(directory.glob(TrialPaths(directory).samples("*").name)):
        recording = read_recording(path)
        if recording is not None:
            yield str(recording.facts.get("node", "")), recording


def _timelines(
    cell: CellResult,
    trial: TrialResult,
    node: str,
    recording: Recording,
    marks: tuple[Mark, ...],
    zero_ns: int,
) -> Iterator[Timeline]:
    zero_s = zero_ns / 1e9
    where = f"{cell.label}, block {trial.block} on {node}"
    source = f"Raw readings: {trial.directory.rpartition('cells/')[2]}"
    drawings = (
        ("cores busy", "%", 100.0, _cores(recording)),
        ("GPUs: any kernel ran", "%", 100.0, _gauges(recording, "gpu.utilisation", 100.0)),
        ("waiting for a resource", "%", 100.0, _pressure(recording)),
        ("memory", "GiB", None, _memory(recording)),
        ("moved", "MB/s", None, _moved(recording)),
        ("power", "W", None, _power(recording)),
    )
    for title, unit, high, drawn in drawings:
        channels, interval_s = _shifted(drawn, zero_s)
        if channels:
            top = high or max(
                (float(max(one.values, default=0.0)) for one in channels), default=0.0
            )
            yield Timeline(
                title=f"{where}: {title}",
                unit=unit,
                low=0.0,
                high=_rounded(top),
                channels=tuple(channels),
                interval_s=interval_s,
                marks=marks,
                source=source,
            )


Drawn = list[tuple[str, "Floats", "Floats", float]]


def _shifted(drawn: Drawn, zero_s: float) -> tuple[list[Channel], float]:
    """Count time from the trial's first phase in whole ticks; mark where readings were missed."""
    import numpy as np

    channels = []
    for name, times, values, period_s in drawn:
        since = np.round((times - zero_s) / period_s) * period_s
        wide = np.flatnonzero(np.diff(since) > 1.9 * period_s)
        gaps = tuple((float(since[at]), float(since[at + 1])) for at in wide)
        channels.append(Channel(name, since.tolist(), values.tolist(), gaps))
    return channels, max((period_s for *_, period_s in drawn), default=1.0)


def _rounded(top: float) -> float:
    """Round the end of a scale up to two figures."""
    if top <= 0:
        return 1.0
    import math

    step = 10.0 ** (math.floor(math.log10(top)) - 1)
    return math.ceil(top / step) * step


def _cores(recording: Recording) -> Drawn:
    import numpy as np

    drawn = []
    for first in recording.named("cpu.user"):
        scope = first.channel.scope
        parts = [recording.find(scope, name) for name in BUSY]
        known = [part for part in parts if part is not None]
        times, total = known[0].rates()
        for part in known[1:]:
            total = total + part.rates()[1]
        percent = np.clip(100.0 * total, 0.0, 100.0)
        drawn.append((scope.replace(":", " "), times, percent, first.period_ns / 1e9))
    return drawn


def _pressure(recording: Recording) -> Drawn:
    names = (
        ("cpu.some", "a core"),
        ("memory.some", "memory"),
        ("io.some", "storage"),
    )
    drawn = []
    for name, title in names:
        series = recording.find("node", f"pressure.{name}")
        if series is not None:
            times, rates = series.rates()
            drawn.append((title, times, 100.0 * rates, series.period_ns / 1e9))
    return drawn


def _gauges(recording: Recording, name: str, factor: float) -> Drawn:
    return [
        (one.channel.scope, *_known(one, factor), one.period_ns / 1e9)
        for one in recording.named(name)
        if len(one.raw)
    ]


def _known(series: Series, factor: float) -> tuple[Floats, Floats]:
    return series.times_ns / 1e9, factor * series.values


def _memory(recording: Recording) -> Drawn:
    drawn = []
    total, left = (recording.find("node", f"memory.{name}") for name in ("total", "available"))
    if total is not None and left is not None:
        used = (total.values - left.values) / _GIB
        drawn.append(("node", total.times_ns / 1e9, used, total.period_ns / 1e9))
    for name in ("rank.resident", "gpu.memory-used"):
        drawn += _gauges(recording, name, 1 / _GIB)
    return drawn


def _moved(recording: Recording) -> Drawn:
    drawn = []
    for name, title in _RATES:
        for series in recording.named(name):
            times, rates = series.rates()
            if len(rates) and float(rates.max()) > _LOUD:
                label = f"{series.channel.scope.replace(':', ' ')} {title}"
                drawn.append((label, times, rates / _MB, series.period_ns / 1e9))
    return drawn


def _power(recording: Recording) -> Drawn:
    drawn = _gauges(recording, "gpu.power.average", 1.0) or _gauges(
        recording, "gpu.power.instant", 1.0
    )
    for series in recording.named("energy"):
        times, rates = series.rates()
        drawn.append((series.channel.scope, times, rates, series.period_ns / 1e9))
    return drawn


def _phases(dataset: Dataset, cell: CellResult, trial: TrialResult) -> tuple[tuple[Mark, ...], int]:
    """Give the first rank's phases as marks, and when the first began."""
    name = str(TrialName(trial.block, trial.attempt))
    rows = dataset.sql(
        "SELECT phase, start_ns, coalesce(end_ns, start_ns) FROM phases "  # noqa: S608  keys and names of our own files, quoted
        f"WHERE run = {_quoted(cell.run)} AND cell_key = {_quoted(cell.key)} "
        f"AND trial = {_quoted(name)} AND rank = 0 ORDER BY start_ns"
    ).rows
    zero = int(rows[0][1]) if rows else 0
    marks = [Mark(phase, (start - zero) / 1e9, (end - zero) / 1e9) for phase, start, end in rows]
    return tuple(marks), zero


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
