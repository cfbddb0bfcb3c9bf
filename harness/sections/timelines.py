"""The section of what the hardware did: timelines of a few trials, and every reading of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from harness.analysis import numbers
from harness.analysis.evidence import Evidence, Recordings, Timeline
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.analysis.timelines import hardware_use
from harness.analysis.timelines.time_grid import BINS, BinnedTimeline, binned, steps_apart
from harness.sections.contract.blocks import Block, Chart, Fold, Gist, Heat, Note, Sheet
from harness.sections.contract.section import Section
from harness.units import counted

_READINGS = "Every reading: medians over the steady windows of the counted trials"
_PHASES = "What each phase of the drawn trials used, from start-up to the end"
_UNREAD = "What could not be read here, and why"


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    recordings = evidence.recordings or Recordings()
    drawn = dict.fromkeys(one.recording or one.title for one in recordings.timelines)
    if drawn:
        yield Gist(f"{counted(len(drawn), 'recording')}, drawn; every reading as a table")
    observer = hardware_use.observer(results)
    if observer:
        yield Note(observer)
    yield from timeline_charts(recordings.timelines)
    by = ("workload", "cell", "node", "what", "name")
    yield Fold(_READINGS, (Sheet(hardware_use.usage(results), filters=by),))
    yield Fold(_PHASES, (Sheet(hardware_use.phases(recordings)),))
    yield Fold(_UNREAD, (Sheet(hardware_use.unread(recordings)),))


def timeline_charts(timelines: Sequence[Timeline]) -> Iterator[Block]:
    """Draw the timelines of each recording together, on one axis."""
    drawn: dict[str, list[tuple[int, Timeline, BinnedTimeline]]] = {}
    for number, one in enumerate(timelines, 1):
        drawn.setdefault(one.recording or one.title, []).append((number, one, binned(one, BINS)))
    for index, own in enumerate(drawn.values()):
        axis = min(grid.start_s for *_, grid in own), max(grid.stop_s for *_, grid in own)
        charts = tuple(
            _chart(number, timeline, grid, axis, is_first=at == 0)
            for at, (number, timeline, grid) in enumerate(own)
        )
        recording = own[0][1].recording
        if recording:
            yield Fold(recording, charts, is_open=index == 0, is_printed=True)
        else:
            yield from charts


def _chart(
    number: int,
    timeline: Timeline,
    grid: BinnedTimeline,
    axis: tuple[float, float],
    *,
    is_first: bool,
) -> Chart:
    sentences = [f"Faint is {timeline.low:g}, strong {timeline.high:g} {timeline.unit}."]
    sentences.append(f"One column is {numbers.seconds(grid.width_s)}; hatched: nothing was read.")
    if is_first:  # what the drawings of one recording share is said once
        sentences += _shared(timeline)
    table = _table(f"timeline-{number}", timeline, grid)
    return Chart(Heat(timeline, grid, axis), table, timeline.title, " ".join(sentences))


def _table(name: str, timeline: Timeline, grid: BinnedTimeline) -> Table:
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
    return Table(name, timeline.full_title, columns, tuple(rows))


def _shared(timeline: Timeline) -> list[str]:
    sentences = []
    if timeline.clock_bound_s == 0:
        sentences.append("Steps and readings were timed by one clock.")
    elif timeline.clock_bound_s is not None:
        sentences.append(f"Clocks agree within {numbers.seconds(timeline.clock_bound_s)}.")
    steps = {mark.name for mark in steps_apart(timeline.marks)}
    if steps:
        what = "step" if steps == {"step"} else "window of steps"
        sentences.append(f"Short lines below the phases: where each {what} began.")
    if timeline.source:
        sentences.append(timeline.source)
    return sentences


SECTION = Section(
    "What the hardware did meanwhile",
    1000,
    _blocks,
    contents="Timelines",
    needs=frozenset({"recordings"}),
)
