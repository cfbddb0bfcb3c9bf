"""This file finds cells that differ in the number of devices only, and how their rates scale.

Its bands divide the ends of two intervals, so they are wider than a paired comparison would give.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.store.results import CellResult, Interval, Results
from reports.ranking import Ranking, factor_words, rankings
from reports.tables import Column, Table

_COUNTS = ("nodes", "ranks_per_node", "devices_per_rank")
_NOISE_OVER_ONE = 1.02
_ALSO_CHANGES = frozenset({*_COUNTS, "strategy", "global_batch"})


@dataclass(frozen=True)
class ScalingPoint:
    """What so many devices reach, against the fewest."""

    devices: int
    speedup: float
    low: float | None
    high: float | None
    cell: CellResult


@dataclass(frozen=True)
class ScalingLine:
    """Cells alike but for the number of devices."""

    workload: str
    name: str
    unit: str
    points: tuple[ScalingPoint, ...]

    @property
    def baseline(self) -> int:
        """How many devices everything is compared with."""
        return self.points[0].devices


def devices(cell: CellResult) -> int:
    """Count the devices (or, on CPUs, the ranks) of a cell."""
    product = 1
    for name in _COUNTS:
        product *= int(cell.factors.get(name) or 1)
    return product


def batch_meaning(cell: CellResult) -> str:
    """Say what is the same at every number of devices: the batch of each, or of all together."""
    if cell.factors.get("global_batch") is not None:
        return f"{cell.factors['global_batch']} in all (strong scaling)"
    return f"{cell.factors.get('batch')} a device (weak scaling)"


def _alike(cell: CellResult) -> tuple[object, ...]:
    others = {k: repr(v) for k, v in cell.factors.items() if k not in _ALSO_CHANGES}
    others["batch"] = batch_meaning(cell)
    # One device needs no strategy: it is the baseline of every strategy of its framework.
    return (cell.run, cell.framework, tuple(sorted(others.items())))


def _point(cell: CellResult, base: CellResult) -> ScalingPoint | None:
    if cell.rate is None or base.rate is None or not base.rate.value:
        return None
    between: Interval | None = None
    mine, other = cell.rate.interval, base.rate.interval
    if cell is not base and mine and other and other.low > 0:
        between = Interval(mine.low / other.high, mine.high / other.low, mine.level, "")
    return ScalingPoint(
        devices(cell),
        cell.rate.value / base.rate.value,
        between.low if between else None,
        between.high if between else None,
        cell,
    )


def _lines(ranking: Ranking) -> list[ScalingLine]:
    groups: dict[tuple[object, ...], list[CellResult]] = {}
    for cell in ranking.cells:
        groups.setdefault(_alike(cell), []).append(cell)
    found = []
    for cells in groups.values():
        least = min(devices(cell) for cell in cells)
        bases = [cell for cell in cells if devices(cell) == least]
        more = [cell for cell in cells if devices(cell) > least]
        for strategy in dict.fromkeys(cell.strategy for cell in more):
            own = [c for c in bases if c.strategy == strategy] or bases
            line = [own[0], *(c for c in more if c.strategy == strategy)]
            points = [p for p in (_point(c, own[0]) for c in line) if p]
            points.sort(key=lambda p: p.devices)
            if len(points) > 1:
                found.append(
                    ScalingLine(
                        ranking.workload, _name(ranking, line[-1]), ranking.unit, tuple(points)
                    )
                )
    return found


def _name(ranking: Ranking, cell: CellResult) -> str:
    parts = [cell.framework]
    parts += [cell.strategy] if cell.strategy != "none" else []
    parts += [
        factor_words(name, cell.factors.get(name))
        for name in ranking.varied
        if name not in _ALSO_CHANGES and name not in ("workload", "framework")
    ]
    if len(ranking.runs) > 1:
        parts.append(ranking.machine(cell))
    return " ".join(parts)


def scaling_lines(results: Results) -> list[ScalingLine]:
    """Find every line of two or more device counts."""
    return [line for ranking in rankings(results) for line in _lines(ranking)]


def _mark(line: ScalingLine, point: ScalingPoint, efficiency: float) -> str | None:
    """Say what a reader must know before believing an efficiency."""
    if point.devices == line.baseline:
        return "baseline"
    marks = []
    if efficiency > _NOISE_OVER_ONE:
        marks.append("more than 100 %: check the baseline")
    if line.baseline > 1:
        marks.append(f"compared with {line.baseline} devices, not with one")
    base = line.points[0].cell
    doubts = {str(t.verdict) for t in base.trials if t.counted and t.verdict not in (None, "valid")}
    if doubts:
        marks.append(f"the baseline is {' and '.join(sorted(doubts))}")
    return "; ".join(marks) or None


def scaling(results: Results) -> Table:
    """Lay out speed-up and efficiency."""
    columns = (
        Column("workload", "workload", "name"),
        Column("cell", "cell", "name"),
        Column("batch", "batch"),
        Column("devices", "devices", "count"),
        Column("rate", "rate", "number"),
        Column("rate_interval", "interval", "interval"),
        Column("unit", "unit"),
        Column("trials", "n", "count"),
        Column("speedup", "speed-up", "ratio"),
        Column("speedup_interval", "its band", "interval"),
        Column("efficiency", "efficiency", "share"),
        Column("mark", "mark"),
    )
    rows = []
    for line in scaling_lines(results):
        for point in line.points:
            efficiency = point.speedup * line.baseline / point.devices
            rate = point.cell.rate
            band = None
            if point.low is not None and point.high is not None:
                band = Interval(point.low, point.high, 0.0, "")
            rows.append(
                (
                    line.workload,
                    line.name,
                    batch_meaning(point.cell),
                    point.devices,
                    rate.value if rate else None,
                    rate.interval if rate else None,
                    line.unit,
                    rate.n if rate else 0,
                    point.speedup,
                    band,
                    efficiency,
                    _mark(line, point, efficiency),
                )
            )
    return Table("scaling", "Scaling", columns, tuple(rows))
