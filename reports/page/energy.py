"""Draw the power of cells by part, with the work per joule and the meter's name."""

from __future__ import annotations

from typing import Any

from harness.analysis import numbers
from harness.analysis.evidence import Evidence
from harness.analysis.tables import Column, Table
from reports.charts.stacks import stacks
from reports.page.figures import Drawing

_COLUMNS = (
    Column("cell", "cell", "name"),
    Column("part", "part"),
    Column("power_w", "mean power, W", "number"),
    Column("work_per_joule", "work per joule", "number"),
    Column("work_per_joule_interval", "interval", "interval"),
    Column("unit", "unit"),
    Column("trials", "n", "count"),
    Column("source", "source", "long"),
)


def energy_drawings(evidence: Evidence) -> list[Drawing]:
    """Draw the mean power of the steady windows, stacked by what was metered."""
    if not evidence.energy:
        return []
    rows: list[tuple[Any, ...]] = []
    for one in evidence.energy:
        work = one.work_per_joule
        told = (work.value, work.interval, work.unit, work.n) if work else (None, None, None, None)
        for part, watts in one.parts_w:
            rows.append((one.name, part, watts, *told, one.source))
            told = (None, None, None, None)  # of the whole cell, so said once
    title = "Mean power in the steady window"
    bars = [(one.name, one.parts_w) for one in evidence.energy]
    svg, narrow = (
        stacks(bars, name=name, label=title, shown=_watts, narrow=name != "energy")
        for name in ("energy", "energy-narrow")
    )
    note = " ".join(dict.fromkeys(one.source for one in evidence.energy))
    table = Table("energy", title, _COLUMNS, tuple(rows))
    return [Drawing("", note, svg, "energy", table, narrow=narrow)]


def _watts(power: float) -> str:
    return f"{numbers.number(power)} W"
