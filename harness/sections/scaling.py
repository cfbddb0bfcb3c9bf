"""The section of scaling: speed-up over devices, and efficiency beside what was to be expected."""

from __future__ import annotations

from collections.abc import Iterator

from harness.analysis.evidence import Evidence
from harness.analysis.results import Results
from harness.analysis.scaling.expected import expected
from harness.analysis.scaling.scaling import ScalingLine, scaling, scaling_lines
from harness.analysis.tables import Table
from harness.sections.contract.blocks import Block, Chart, Curve, Curves, Group, Note, Point, Sheet
from harness.sections.contract.section import Section

_BANDS = (
    "Each speed-up is the mean of the blocks' own ratios to the baseline, its band their "
    "order-statistic interval; the dashed line is ideal."
)
_LEAST = (
    "Expected, if nothing hides: one device's step and, after it, one all-reduce of all gradients, "
    "as long as the all-reduces of the bare network in this run let it take; nothing of it is "
    "fitted to these steps. What is measured above it hides behind computing; what is measured "
    "below it is lost elsewhere."
)
_PREDICTED = (
    "Predicted from fewer devices: the growth fitted to the smaller counts, with the largest left "
    "out."
)


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    lines, whole = scaling_lines(results), scaling(results)
    yield Note(
        "Speed-up against the fewest devices of the same cell; efficiency is speed-up per device."
    )
    yield Sheet(whole, rows_on_page=())  # whose charts have it, each its workload's
    for index, workload in enumerate(dict.fromkeys(line.workload for line in lines), 1):
        own = tuple(_curve(line) for line in lines if line.workload == workload)
        rows = tuple(row for row in whole.rows if row[0] == workload)
        title = f"Speed-up of {workload} over devices"
        table = Table(f"scaling-{index}", title, whole.columns, rows)
        yield Chart(Curves(own), table, workload, _BANDS)
    table = expected(results)
    yield Group((Note(_meaning(table)), Sheet(table)), "Predicted and measured efficiency")


def _curve(line: ScalingLine) -> Curve:
    points = (Point(one.devices, one.speedup, one.low, one.high) for one in line.points)
    return Curve(line.name, tuple(points))


def _meaning(table: Table) -> str:
    """Say what the columns mean that have anything in them."""
    known = {
        column.key
        for index, column in enumerate(table.columns)
        if any(row[index] is not None for row in table.rows)
    }
    columns = (("least", _LEAST), ("predicted", _PREDICTED))
    return " ".join(text for key, text in columns if key in known)


SECTION = Section("Scaling", 500, _blocks)
