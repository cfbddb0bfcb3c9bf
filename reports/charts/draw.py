"""Draw a chart as SVG: each kind of drawing by its own module."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from harness.analysis.tables import Column, shown
from harness.sections.contract.blocks import (
    Chart,
    Curves,
    Heat,
    Ratios,
    Roof,
    Rungs,
    Squares,
    Stacks,
    Waterfall,
)
from reports.charts.heat import NARROW, WIDE, heat
from reports.charts.lines import lines
from reports.charts.ratios import ratios
from reports.charts.roofline import roofline
from reports.charts.rungs import rungs
from reports.charts.squares import squares
from reports.charts.stacks import stacks
from reports.charts.waterfall import waterfall


def amount(of: Stacks, value: float) -> str:
    """Say how much a bar or a part of it is."""
    return f"{shown(Column('', '', of.kind), value)} {of.unit}".rstrip()


def draw(chart: Chart, colours: Mapping[str, int], *, narrow: bool = False) -> str:
    """Draw a chart for a wide page or for a phone, cells in the colours of their page."""
    title = chart.table.title
    name = f"{chart.table.name}-narrow" if narrow else chart.table.name
    match chart.drawing:
        case Stacks(bars, most=most):
            said = partial(amount, chart.drawing)
            return stacks(bars, name=name, label=title, shown=said, most=most, narrow=narrow)
        case Curves():
            return lines(chart.drawing, colours, name=name, title=title, narrow=narrow)
        case Rungs(steps):
            return rungs(steps, name=name, label=title, narrow=narrow)
        case Roof(ceilings, points):
            return roofline(ceilings, points, colours, name=name, narrow=narrow)
        case Ratios(compared):
            return ratios(compared, name=name, label=title, narrow=narrow)
        case Heat(timeline, grid, axis):
            width = NARROW if narrow else WIDE
            return heat(timeline, grid, name=name, width=width, axis=axis)
        case Squares():
            return squares(chart.drawing, name=name, label=title, narrow=narrow)
        case Waterfall():
            return waterfall(chart.drawing, name=name, label=title, narrow=narrow)
