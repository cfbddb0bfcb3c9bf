"""The section of scaling: how efficient more devices are, how far that goes, what it costs."""

from __future__ import annotations

from collections.abc import Iterator

from harness.analysis.evidence import Evidence
from harness.analysis.results import Results
from harness.analysis.scaling.efficiency import in_words
from harness.analysis.scaling.scaling import (
    ScalingLine,
    efficiency_interval,
    scaling,
    scaling_lines,
)
from harness.analysis.tables import Table
from harness.sections.contract.blocks import (
    Block,
    Brief,
    Chart,
    Curve,
    Curves,
    Facts,
    Point,
    Sheet,
)
from harness.sections.contract.section import Section

_BANDS = (
    "Efficiency is the speed-up against the fewest devices of the same cell, per device. It is "
    "the mean of the blocks' own ratios, its band their order-statistic interval; dashed are all "
    "of the ideal, and 80 % of it."
)


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    lines, whole = scaling_lines(results), scaling(results)
    several = len({line.workload for line in lines}) > 1
    answers = tuple(
        (f"{line.workload} · {line.name}" if several else line.name, in_words(line))
        for line in lines
    )
    yield Facts(answers, is_prose=True)
    yield Sheet(whole, rows_on_page=())  # whose charts have it, each its workload's
    for index, workload in enumerate(dict.fromkeys(line.workload for line in lines), 1):
        alike = [line for line in lines if line.workload == workload]
        own = tuple(map(_curve, alike))
        counts = {f"{line.counts}s" for line in alike}
        rows = tuple(row for row in whole.rows if row[0] == workload)
        title = f"Efficiency of {workload} over devices"
        table = Table(f"scaling-{index}", title, whole.columns, rows)
        axis = counts.pop() if len(counts) == 1 else "devices"
        yield Chart(Curves(own, axis), table, workload, _BANDS)
    yield Brief("How far it scales:", tuple(f"{name}: {said}" for name, said in answers))


def _curve(line: ScalingLine) -> Curve:
    points = []
    for one in line.points:
        interval = efficiency_interval(one.reached)
        ends = (interval.low, interval.high) if interval else (None, None)
        points.append(Point(one.devices, one.reached.efficiency, *ends))
    cell = line.points[-1].cell
    return Curve(line.name, cell.run, cell.framework, tuple(points))


SECTION = Section("How far does it scale?", 60, _blocks, contents="Scaling")
