"""Lay out what the hardware did in the steady windows, and what observing it cost."""

from __future__ import annotations

from harness.analysis import numbers
from harness.analysis.evidence import Recordings
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.verdicts.results import CellResult, Reading

_MOST_CORES = 16
"""Beyond this many cores a table says only how the node did; the timelines show each."""
_SPLIT = {
    "bytes/s": (1e6, "MB/s"),
    "bytes": (2.0**20, "MiB"),
    "share": (0.01, "%"),
    "Hz": (1e6, "MHz"),
    "1": (1.0, ""),
    "1/s": (1.0, "per second"),
}


def usage(results: Results) -> Table:
    """Give every reading of every cell: medians of the counted trials' steady windows."""
    columns = (
        Column("workload", "workload"),
        Column("cell", "cell", "name"),
        Column("node", "node"),
        Column("what", "of"),
        Column("name", "quantity"),
        Column("mean", "mean", "number"),
        Column("peak", "highest", "number"),
        Column("unit", "unit"),
    )
    rows = tuple(
        (
            ranking.workload,
            ranking.name(cell),
            reading.node,
            reading.scope,
            reading.name,
            *in_units(reading),
        )
        for ranking in results.rankings
        for cell in (*ranking.cells, *ranking.set_aside)
        for reading in _listed(cell)
    )
    return Table("usage", "What the hardware did in the steady windows", columns, rows)


def _listed(cell: CellResult) -> list[Reading]:
    cores = sum(reading.scope.startswith("core:") for reading in cell.readings)
    several = cores > _MOST_CORES
    shown = [one for one in cell.readings if not (several and one.scope.startswith("core:"))]
    # What moved nothing is no news: a machine has a dozen idle interfaces.
    return [one for one in shown if one.mean or not one.scope.startswith(("net:", "disk:"))]


def in_units(reading: Reading) -> tuple[float, float | None, str]:
    """Give a reading's mean and highest value in the unit that a person reads."""
    factor, unit = _SPLIT.get(reading.unit, (1.0, reading.unit))
    peak = None if reading.peak is None else reading.peak / factor
    return reading.mean / factor, peak, unit


def phases(recordings: Recordings) -> Table:
    """Give what each node did in each phase of the trials that are drawn."""
    columns = (
        Column("trial", "trial", "name"),
        Column("node", "node"),
        Column("phase", "phase"),
        Column("seconds", "took", "seconds"),
        Column("rank_cores", "cores used by ranks", "number"),
        Column("cores_busy", "cores busy", "number"),
        Column("memory_bytes", "memory of ranks", "bytes"),
        Column("disk_bytes_per_s", "disk, a second", "bytes"),
        Column("network_bytes_per_s", "network, a second", "bytes"),
        Column("gpu_busy", "GPU: a kernel ran", "share"),
        Column("power_w", "power, W", "number"),
    )
    rows = tuple(tuple(vars(one).values()) for one in recordings.phases)
    return Table("phases", "What each phase used", columns, rows)


def unread(recordings: Recordings) -> Table:
    """Give what could not be read, and why."""
    columns = (
        Column("node", "node"),
        Column("source", "source", "name"),
        Column("reason", "not read, because", "long"),
    )
    rows = tuple((one.node, one.source, one.reason) for one in recordings.unread)
    return Table("unread", "Sources that gave nothing, and why", columns, rows)


def observer(results: Results) -> str:
    """Give one sentence on the cost of observing; empty where nothing was observed."""
    costs = [c.utilisation["observer"] for c in results.cells if "observer" in c.utilisation]
    if not costs:
        return ""
    memory = [
        reading.peak
        for cell in results.cells
        for reading in cell.readings
        if reading.scope == "observer" and reading.peak is not None
    ]
    text = f"Observing took {numbers.share(max(costs))} of one core"
    if memory:
        text += f" and {numbers.size(max(memory))} of memory"
    return text + " on each node." + _study(results)


def _study(results: Results) -> str:
    """Give the result of the machine's latest on/off study of the observer, if there is one."""
    for run in results.runs:
        study = run.provenance.get("observer_study")
        if study:
            return (
                f" In an on/off study it slowed a load on every core down by "
                f"{numbers.share(study['slow_down'])} (95 % interval "
                f"{numbers.share(study['low'])} to {numbers.share(study['high'])}, "
                f"{study['pairs']} pairs, {numbers.moment(study['wall_ns'])})."
            )
    return " Whether that slows the steps was not studied here: bakeoff doctor --observer."
