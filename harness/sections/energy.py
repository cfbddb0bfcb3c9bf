"""The section of power and energy: watts by part, with the work per joule and the meter's name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.analysis import numbers
from harness.analysis.evidence import Evidence
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.analysis.timelines.power import EnergyUse, energy
from harness.sections.contract.blocks import Block, Chart, Gist, Stacks
from harness.sections.contract.section import Section

_TITLE = "Mean power in the steady window"
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


def _rows(metered: list[EnergyUse]) -> Iterator[tuple[Any, ...]]:
    for one in metered:
        work = one.work_per_joule
        figures: tuple[Any, ...] = (work.value, work.interval, work.unit, work.n)
        for part, watts in one.parts_w:
            yield (one.name, part, watts, *figures, one.source)
            figures = (None, None, None, None)  # of the whole cell, so said once


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    called = results.names
    every = (energy(cell, called[cell.run, cell.key]) for cell in results.cells)
    metered = [one for one in every if one is not None]
    if not metered:
        return
    alike = [one for one in metered if one.work_per_joule.unit == metered[0].work_per_joule.unit]
    best = max(alike, key=lambda one: one.work_per_joule.value)
    work, _ = numbers.estimate(best.work_per_joule)
    yield Gist(f"most: {work} {best.work_per_joule.unit}, {best.name}")
    bars = tuple((one.name, one.parts_w) for one in metered)
    table = Table("energy", _TITLE, _COLUMNS, tuple(_rows(metered)))
    note = " ".join(dict.fromkeys(one.source for one in metered))
    yield Chart(Stacks(bars, unit="W"), table, note=note)


SECTION = Section("Power and energy", 1100, _blocks)
