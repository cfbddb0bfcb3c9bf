"""Find cells that differ in the number of devices only, and how their rates scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.analysis.blocks.paired_blocks import of_ratios, rates_beside, rates_by_block
from harness.analysis.cell_names import name_of
from harness.analysis.ranking import Ranking
from harness.analysis.results import Results
from harness.analysis.scaling.node_hours import per_epoch, per_million
from harness.analysis.tables import Column, Table
from harness.stats.scaling import SpeedUp, speed_up
from harness.units import counted
from harness.verdicts.results import CellResult, Interval, scaled
from harness.worker.scale import FACTORS as OF_SCALE
from harness.worker.scale import Scale

_Cells = list[CellResult]
_FEWEST_COUNTS = 3
"""Of devices, on a line that is asked how far it goes: two are a comparison."""
_ALSO_CHANGES = frozenset(OF_SCALE) - {"batch"} | {"strategy", "communicate"}


@dataclass(frozen=True)
class ScalingPoint:
    """What so many devices reach, against the fewest."""

    reached: SpeedUp
    cell: CellResult

    @property
    def devices(self) -> int:
        """How many there are."""
        return self.reached.devices

    @property
    def speedup(self) -> float:
        """How many times the baseline's rate it is."""
        return self.reached.ratio

    @property
    def low(self) -> float | None:
        """The lower end of the speed-up."""
        return self.reached.interval.low if self.reached.interval else None

    @property
    def high(self) -> float | None:
        """The upper end of the speed-up."""
        return self.reached.interval.high if self.reached.interval else None


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

    @property
    def counts(self) -> str:
        """What grows, as its reader says it: nodes, where each has one device."""
        is_by_node = all(point.cell.scale.nodes == point.devices for point in self.points)
        return "node" if is_by_node else "device"


def batch_meaning(scale: Scale) -> str:
    """Say what is the same at every number of devices: the batch of each, or of all together."""
    if scale.is_strong:
        return f"{scale.batch_per_step} in all (strong scaling)"
    return f"{scale.batch_per_device} a device (weak scaling)"


def _alike(cell: CellResult) -> tuple[object, ...]:
    others = {k: repr(v) for k, v in cell.factors.items() if k not in _ALSO_CHANGES}
    others["batch"] = batch_meaning(cell.scale)
    # One device needs no strategy: it is the baseline of every strategy of its framework.
    return (cell.run, cell.framework, tuple(sorted(others.items())))


def _point(cell: CellResult, base: CellResult) -> ScalingPoint | None:
    reached = speed_up(
        rates_by_block(base),
        rates_beside(cell, base),
        baseline=base.scale.devices,
        devices=cell.scale.devices,
    )
    return ScalingPoint(reached, cell) if reached else None


def _lines(ranking: Ranking) -> list[ScalingLine]:
    groups: dict[tuple[object, ...], list[CellResult]] = {}
    for cell in ranking.cells:
        if cell.factors.get("message_bytes") is not None:
            continue  # bandwidth is not what more devices are for; `collectives.py` tells it
        groups.setdefault(_alike(cell), []).append(cell)
    found = []
    for cells in groups.values():
        least = min(cell.scale.devices for cell in cells)
        bases = [cell for cell in cells if cell.scale.devices == least]
        more = [cell for cell in cells if cell.scale.devices > least]
        for strategy in dict.fromkeys(cell.strategy for cell in more):
            own = [c for c in bases if c.strategy == strategy] or bases
            layouts = list(_layouts(own[0], [c for c in more if c.strategy == strategy]))
            for where, line in layouts:
                points = [p for p in (_point(c, line[0]) for c in line) if p]
                points.sort(key=lambda p: p.devices)
                if len(points) > 1:
                    name = _name(ranking, line[-1]) + (f" · {where}" if len(layouts) > 1 else "")
                    found.append(ScalingLine(ranking.workload, name, ranking.unit, tuple(points)))
    return found


def _layouts(base: CellResult, more: Sequence[CellResult]) -> Iterator[tuple[str, _Cells]]:
    """Part what grows within a node from what grows over nodes of so many devices each."""
    nodes = base.scale.nodes
    within = [cell for cell in more if cell.scale.nodes == nodes]
    if within:
        yield "within a node" if nodes == 1 else "more a node", [base, *within]
    across = [cell for cell in more if cell not in within]
    for each in sorted({cell.scale.devices_per_node for cell in across}):
        alike = [c for c in (base, *within, *across) if c.scale.devices_per_node == each]
        start = [] if alike[0].scale.nodes == nodes else [base]
        yield f"over nodes, {each} a node", [*start, *alike]


def _name(ranking: Ranking, cell: CellResult) -> str:
    names = [name for name in ranking.distinguishing if name not in _ALSO_CHANGES]
    machine = f" · {ranking.machine(cell)}" if len(ranking.runs) > 1 else ""
    return name_of(cell, ("strategy", *names), ranking.distinguishing) + machine


def scaling_lines(results: Results) -> list[ScalingLine]:
    """Find every line of two or more device counts; up a node and out over nodes are two."""
    return [line for ranking in results.rankings for line in _lines(ranking)]


def lines_of_all(ranking: Ranking) -> list[ScalingLine]:
    """Give the lines of a ranking that asks only how far things scale; of another one, none.

    Such a one holds cells of one machine, each on a line, and one line at least has three counts.
    """
    lines = _lines(ranking) if len(ranking.runs) == 1 else []
    on_lines = {point.cell.key for line in lines for point in line.points}
    longest = max((len(line.points) for line in lines), default=0)
    is_about_scaling = longest >= _FEWEST_COUNTS and on_lines == {c.key for c in ranking.cells}
    return lines if is_about_scaling else []


def more_threads(base: CellResult, cell: CellResult) -> str:
    """Say that a rank of the baseline computed with more or fewer threads, if that is known."""
    before, after = _threads(base), _threads(cell)
    if before and after and before != after and base.factors.get("device") == "cpu":
        return f"a rank of the baseline has {counted(before, 'thread')}, here {after}"
    return ""


def _threads(cell: CellResult) -> int | None:
    """Give how many threads one rank computed with, where every trial says the same."""
    counts = {t.facts.get("threads") for t in cell.trials if t.counted}
    one = counts.pop() if len(counts) == 1 else None
    return one if isinstance(one, int) else None


def mark(line: ScalingLine, point: ScalingPoint) -> str | None:
    """Give the mark of an efficiency that needs an explanation."""
    if point.devices == line.baseline:
        return "baseline"
    marks = []
    if point.reached.is_impossible:
        marks.append("more than 100 %: check the baseline")
    if line.baseline > 1:
        marks.append(f"compared with {line.baseline} devices, not with one")
    base = line.points[0].cell
    if told := more_threads(base, point.cell):
        marks.append(told)
    doubts = {str(t.verdict) for t in base.trials if t.counted and t.verdict not in (None, "valid")}
    if doubts:
        marks.append(f"the baseline is {' and '.join(sorted(doubts))}")
    return "; ".join(marks) or None


def _interval(reached: SpeedUp) -> Interval | None:
    one = reached.interval
    if one is None or reached.devices == reached.baseline:
        return None
    return of_ratios(one)


def efficiency_interval(reached: SpeedUp) -> Interval | None:
    """Give the interval of the efficiency; None where there are too few blocks."""
    one = _interval(reached)
    return one and scaled(one, 1 / reached.ideal)


def scaling(results: Results) -> Table:
    """Lay out speed-up and efficiency."""
    columns = (
        Column("workload", "workload", "name"),
        Column("cell", "cell", "name"),
        Column("batch", "batch"),
        Column("devices", "devices", "count"),
        Column("nodes", "nodes", "count"),
        Column("rate", "rate", "number"),
        Column("rate_interval", "interval", "interval"),
        Column("unit", "unit"),
        Column("trials", "n", "count"),
        Column("speedup", "speed-up", "ratio"),
        Column("speedup_interval", "its interval", "interval"),
        Column("level", "level", "share"),
        Column("efficiency", "efficiency", "share"),
        Column("efficiency_interval", "its interval", "interval"),
        Column("node_hours_per_epoch", "node-hours an epoch", "number"),
        Column("node_hours_per_million", "node-hours a million", "number"),
        Column("mark", "mark"),
    )
    rows = []
    for line in scaling_lines(results):
        for point in line.points:
            rate, between = point.cell.rate, _interval(point.reached)
            rows.append(
                (
                    line.workload,
                    line.name,
                    batch_meaning(point.cell.scale),
                    point.devices,
                    point.cell.scale.nodes,
                    rate.value if rate else None,
                    rate.interval if rate else None,
                    line.unit,
                    rate.n if rate else 0,
                    point.speedup,
                    between,
                    between.level if between else None,
                    point.reached.efficiency,
                    efficiency_interval(point.reached),
                    per_epoch(point.cell),
                    per_million(point.cell),
                    mark(line, point),
                )
            )
    return Table("scaling", "Scaling", columns, tuple(rows))
