"""Measure what exchanging messages costs: time, and bandwidth as NCCL's tests define it.

Algorithm bandwidth is the message over the time; bus bandwidth is what a link must then have
carried, whatever the number of ranks (NVIDIA's nccl-tests, PERFORMANCE.md): of an all-reduce
2 (n - 1) / n times as much, of an all-gather (n - 1) / n, of the others as much.
"""

from __future__ import annotations

from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.store.records import RunInfo
from harness.verdicts.results import CellResult, Interval

_ON_THE_BUS = {"all-reduce": 2.0, "all-gather": 1.0}


def bus_factor(workload: str, ranks: int) -> float:
    """Give what a link carries over the size of the message."""
    factor = _ON_THE_BUS.get(workload)
    return 1.0 if factor is None else factor * (ranks - 1) / ranks


def collectives(results: Results) -> Table:
    """Lay out every exchange, smallest messages first."""
    columns = (
        Column("workload", "collective", "name"),
        Column("cell", "cell", "name"),
        Column("ranks", "ranks", "count"),
        Column("message_bytes", "message", "bytes"),
        Column("seconds", "time", "seconds"),
        Column("algorithm", "algorithm bandwidth, GB/s", "number"),
        Column("algorithm_interval", "interval", "interval"),
        Column("bus", "bus bandwidth, GB/s", "number"),
        Column("bus_interval", "interval", "interval"),
        Column("peak_share", "of the link's peak", "share"),
        Column("carried", "carried by"),
        Column("interfaces", "over"),
        Column("trials", "n", "count"),
    )
    rows = []
    peaks = {run.name: link_peak(run) for run in results.runs}
    for ranking in results.rankings:
        of_messages = [c for c in ranking.cells if c.factors.get("message_bytes") is not None]
        for cell in sorted(of_messages, key=_order):
            name = f"{cell.framework} {cell.strategy}"
            if len(ranking.runs) > 1:
                name += f" · {ranking.machine(cell)}"
            rows.append(_row(cell, name, peaks.get(cell.run)))
    return Table("collectives", "What exchanging messages costs", columns, tuple(rows))


def _order(cell: CellResult) -> tuple[object, ...]:
    return (
        cell.run,
        cell.framework,
        cell.strategy,
        cell.scale.ranks,
        cell.factors["message_bytes"],
    )


def link_peak(run: RunInfo) -> float | None:
    """Give what all adapters of a node carry together in one direction, as the platform claims."""
    network = run.platform.get("network") or {}
    bandwidth = network.get("bandwidth")
    return None if bandwidth is None else float(bandwidth) * int(network.get("adapters") or 1)


def peak_share(cell: CellResult, peak: float | None) -> float | None:
    """Give the part of a link's peak that the messages of several nodes reached."""
    if not peak or cell.scale.nodes < 2 or cell.rate is None:
        return None
    return cell.rate.value * bus_factor(cell.workload, cell.scale.ranks) / peak


def _row(cell: CellResult, name: str, peak: float | None) -> tuple[object, ...]:
    size, ranks = cell.factors["message_bytes"], cell.scale.ranks
    factor = bus_factor(cell.workload, ranks)
    assert cell.rate is not None, "a ranked cell has a rate"
    rate = cell.rate.value
    return (
        cell.workload,
        name,
        ranks,
        size,
        size / rate,
        rate / 1e9,
        _times(cell.rate.interval, 1e-9),
        rate * factor / 1e9,
        _times(cell.rate.interval, factor * 1e-9),
        peak_share(cell, peak),
        _said(cell, "collectives"),
        interfaces(cell),
        cell.rate.n,
    )


def interfaces(cell: CellResult) -> str | None:
    """Name the interfaces that carried the messages of every counted trial, most bytes first."""
    moved: dict[str, int] = {}
    for trial in cell.trials:
        if trial.counted:
            for name, used in (trial.facts.get("network") or {}).items():
                moved[name] = moved.get(name, 0) + int(used.get("sent", 0))
    return ", ".join(sorted(moved, key=lambda name: -moved[name])) or None


def _said(cell: CellResult, fact: str) -> str | None:
    values = {t.facts[fact] for t in cell.trials if t.counted and t.facts.get(fact)}
    return ", ".join(sorted(map(str, values))) or None


def _times(interval: Interval | None, factor: float) -> Interval | None:
    if interval is None:
        return None
    low, high = interval.low * factor, interval.high * factor
    return Interval(low, high, interval.level, interval.meaning)
