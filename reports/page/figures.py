"""Make the page's sections from evidence: drawings, each with its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.analysis import numbers
from harness.analysis.evidence import Evidence, Timeline
from harness.analysis.tables import Column, Table
from harness.sections.scaling.scaling import scaling, scaling_lines
from harness.verdicts.results import Results
from reports.charts.heat import BINS, NARROW, heat, steps_drawn
from reports.charts.lines import lines
from reports.charts.roofline import roofline
from reports.page.timeline_packing import MOST_CHARACTERS, Binned, binned, packed_together


@dataclass(frozen=True)
class Drawing:
    """A chart under a heading, the table that says the same, and what to zoom into."""

    title: str
    note: str
    svg: str
    name: str
    table: Table
    packed: str = ""
    raw: str = ""
    """Where its raw readings lie, from the page; empty where they were not written beside it."""
    narrow: str = ""
    """The chart as a phone shows it; empty where the other is only made smaller."""


def scaling_drawings(results: Results) -> list[Drawing]:
    """Draw each workload's scaling, where cells differ in the number of devices."""
    series = scaling_lines(results)
    whole = scaling(results)
    drawn = []
    for index, workload in enumerate(dict.fromkeys(line.workload for line in series)):
        name = f"scaling-{index + 1}"
        title = f"Speed-up of {workload} over devices"
        rows = tuple(row for row in whole.rows if row[0] == workload)
        note = (
            "Each speed-up is the median of the blocks' own ratios to the baseline, its band their "
            "order-statistic interval; the dashed line is ideal."
        )
        own = [s for s in series if s.workload == workload]
        svg, narrow = (
            lines(own, name=called, title=title, narrow=called != name)
            for called in (name, f"{name}-narrow")
        )
        table = Table(name, title, whole.columns, rows)
        drawn.append(Drawing(workload, note, svg, name, table, narrow=narrow))
    return drawn


def roof_drawings(evidence: Evidence) -> list[Drawing]:
    """Draw the roofline, if any cell can be placed below it."""
    if not evidence.roof_points:
        return []
    columns = (
        Column("name", "cell or ceiling", "name"),
        Column("intensity", "operations per byte", "number"),
        Column("flops", "operations per second", "number"),
        Column("bytes_per_s", "bytes per second", "number"),
        Column("how", "known from"),
    )
    points = tuple((p.name, p.intensity, p.flops, None, "this study") for p in evidence.roof_points)
    roofs = tuple((c.name, None, c.flops, c.bytes_per_s, c.how) for c in evidence.ceilings)
    table = Table("roofline", "Roofline", columns, (*points, *roofs))
    svg, narrow = (
        roofline(evidence.ceilings, evidence.roof_points, name=name, narrow=name != "roofline")
        for name in ("roofline", "roofline-narrow")
    )
    return [Drawing("", "", svg, "roofline", table, narrow=narrow)]


def findings(evidence: Evidence) -> Table:
    """Lay a paper's statements beside what was measured."""
    columns = (
        Column("question", "question", "long"),
        Column("paper", "the paper found", "long"),
        Column("measured", "you measured", "long"),
    )
    rows = tuple((f.question, f.paper, f.measured) for f in evidence.findings)
    return Table("findings", "What the paper found, what you measured", columns, rows)


def timeline_drawings(evidence: Evidence, raw: Sequence[str] = ()) -> list[Drawing]:
    """Draw each timeline as a heat map, with the numbers to zoom into, all within one budget.

    ``raw`` says where each timeline's readings lie, where they were written beside the page.
    """
    places = raw or [""] * len(evidence.timelines)
    packed = packed_together(evidence.timelines, MOST_CHARACTERS)
    grids = [binned(timeline, BINS) for timeline in evidence.timelines]
    drawn: list[Drawing] = []
    spans: dict[str, tuple[float, float]] = {}
    owners = [one.title.rpartition(": ")[0] or one.title for one in evidence.timelines]
    for own, grid in zip(owners, grids, strict=True):
        first, last = spans.get(own, (grid.start_s, grid.stop_s))
        spans[own] = min(first, grid.start_s), max(last, grid.stop_s)
    for index, timeline in enumerate(evidence.timelines):
        own, name = owners[index], f"timeline-{index + 1}"
        is_first = owners.index(own) == index
        drawing = _timeline(timeline, grids[index], spans[own], name, is_first=is_first)
        drawn.append(replace(drawing, packed=packed[index], raw=places[index]))
    return drawn


def _timeline(
    timeline: Timeline, grid: Binned, axis: tuple[float, float], name: str, *, is_first: bool
) -> Drawing:
    import numpy as np

    columns = (
        Column("channel", "channel", "name"),
        Column("mean", f"mean, {timeline.unit}", "number"),
        Column("low", "least", "number"),
        Column("high", "most", "number"),
        Column("unread", "not read", "share"),
    )
    rows: list[tuple[Any, ...]] = []
    for row, channel in enumerate(timeline.channels):
        known = np.isfinite(grid.mean[row])
        unread = 1 - float(known.mean())
        if not known.any():
            rows.append((channel.name, None, None, None, unread))
            continue
        least, most = float(grid.low[row][known].min()), float(grid.high[row][known].max())
        rows.append((channel.name, float(grid.mean[row][known].mean()), least, most, unread))
    said = [f"Pale is {timeline.low:g}, dark {timeline.high:g} {timeline.unit}."]
    said.append(f"One column is {numbers.seconds(grid.width_s)}; hatched: nothing was read.")
    if is_first:  # what the drawings of one recording share is said once
        said += _shared(timeline)
    return Drawing(
        timeline.title,
        " ".join(said),
        heat(timeline, grid, name=name, axis=axis),
        name,
        Table(name, timeline.title, columns, tuple(rows)),
        narrow=heat(timeline, grid, name=f"{name}-narrow", width=NARROW, axis=axis),
    )


def _shared(timeline: Timeline) -> list[str]:
    said = []
    if timeline.clock_bound_s == 0:
        said.append("Steps and readings were timed by one clock.")
    elif timeline.clock_bound_s is not None:
        said.append(f"Clocks agree within {numbers.seconds(timeline.clock_bound_s)}.")
    steps = {mark.name for mark in steps_drawn(timeline.marks)}
    if steps:
        what = "step" if steps == {"step"} else "window of steps"
        said.append(f"Short lines below the phases: where each {what} began.")
    if timeline.source:
        said.append(timeline.source)
    return said
