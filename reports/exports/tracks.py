"""Lay cells out as a trace viewer shows them: one process a cell, with tracks and counters.

All cells are aligned on their steps. The first measured step of each cell's trial begins at the
same moment, and there its first traced step begins as well: step *n* of every cell begins at once,
as far apart as the longest step of all is long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite

from harness.analysis.results import Results
from harness.sections.contract.cell_traces import CellTrace, cell_traces
from harness.store.record_readers.traced_steps import TracedSteps

PHASES, STEPS = "phases of the trial", "traced steps"
_GAP_BETWEEN_STEPS = 1.05
_MOST_AT_ONCE = 64
"""Tracks of one layer. In a damaged file thousands of its operations may run at once."""
_LATEST_NS = 1 << 62
"""Viewers count in 64 bits from 0; what a damaged file puts elsewhere is left out."""


@dataclass(frozen=True)
class Slice:
    """One stretch of time on a track, in nanoseconds."""

    name: str
    category: str
    start_ns: int
    length_ns: int
    about: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Track:
    """Slices in order, none of which ends within another that began later."""

    name: str
    slices: tuple[Slice, ...]


@dataclass(frozen=True)
class Counter:
    """One channel that was sampled."""

    name: str
    unit: str
    points: tuple[tuple[int, float], ...]
    """Nanoseconds and values."""


@dataclass(frozen=True)
class Process:
    """One cell."""

    name: str
    label: str
    """What its steps were traced by, or why none were."""
    tracks: tuple[Track, ...]
    counters: tuple[Counter, ...]


def processes(results: Results) -> list[Process]:
    """Lay all cells out."""
    cells = list(cell_traces(results))
    traced = [one.traced for one in cells if isinstance(one.traced, TracedSteps)]
    longest_ns = max((step.length_ns for one in traced for step in one.steps), default=0)
    apart_ns = round(longest_ns * _GAP_BETWEEN_STEPS)
    start_s = max((one.measured_s for one in cells), default=0.0)
    return [_process(one, round(start_s * 1e9), apart_ns) for one in cells]


def _process(cell: CellTrace, zero_ns: int, apart_ns: int) -> Process:
    shift_ns = zero_ns - round(cell.measured_s * 1e9)
    tracks = [*_phases(cell, shift_ns)]
    label = f"no traced steps: {cell.traced}"
    if isinstance(cell.traced, TracedSteps):
        label = f"traced by {cell.traced.traced_by}"
        tracks += _layers(cell.traced, zero_ns, apart_ns)
    counters = [
        Counter(f"{line.title}: {channel.name}", line.unit, points)
        for line in cell.timelines
        for channel in line.channels
        if (points := _points(channel.times_s, channel.values, shift_ns))
    ]
    return Process(cell.name, label, tuple(tracks), tuple(counters))


def _points(
    times_s: Sequence[float], values: Sequence[float], shift_ns: int
) -> tuple[tuple[int, float], ...]:
    pairs = zip(times_s, values, strict=True)
    moved = ((shift_ns + round(at * 1e9), float(value)) for at, value in pairs if isfinite(value))
    return tuple(point for point in moved if 0 <= point[0] < _LATEST_NS)


def _phases(cell: CellTrace, shift_ns: int) -> Iterator[Track]:
    """Give the trial's phases, each with its windows of steps inside."""
    slices = [
        Slice(
            one.name,
            one.kind,
            shift_ns + round(one.start_s * 1e9),
            round((one.end_s - one.start_s) * 1e9),
            {"trial": cell.trial},
        )
        for one in cell.phases
    ]
    yield from _nested(PHASES, [one for one in slices if _can_be_shown(one)])


def _can_be_shown(one: Slice) -> bool:
    return one.start_ns >= 0 and one.length_ns >= 0 and one.start_ns + one.length_ns < _LATEST_NS


def _layers(traced: TracedSteps, zero_ns: int, apart_ns: int) -> Iterator[Track]:
    """Give one track for the steps, and one for each layer, in the order of the network's pass."""
    steps: list[Slice] = []
    of: dict[str, list[Slice]] = {}
    for place, step in enumerate(traced.steps):
        begun_ns = zero_ns + place * apart_ns
        about = {"traced step": str(step.number), "operations left out": str(step.left_out)}
        steps.append(Slice(f"step {place}", "step", begun_ns, step.length_ns, about))
        for kind, start_ns, length_ns in step.operations:
            site, phase, name, type_, shapes = traced.kinds[kind]
            given = {"phase": phase, "type": type_, "shapes": shapes}
            shown = {key: value for key, value in given.items() if value}
            one = Slice(name, phase, begun_ns + start_ns, length_ns, shown)
            of.setdefault(site or phase, []).append(one)
    yield Track(STEPS, tuple(steps))
    for layer, slices in of.items():
        yield from _nested(layer, slices)


def _nested(name: str, slices: Sequence[Slice]) -> Iterator[Track]:
    """Divide slices among tracks on which they nest: operations of one layer may run at once."""
    lanes: list[list[Slice]] = []
    open_until: list[list[int]] = []
    left_out = 0
    for one in sorted(slices, key=lambda s: (s.start_ns, -s.length_ns)):
        end_ns = one.start_ns + one.length_ns
        for lane, ends in zip(lanes, open_until, strict=True):
            while ends and ends[-1] <= one.start_ns:
                ends.pop()
            if not ends or end_ns <= ends[-1]:
                lane.append(one)
                ends.append(end_ns)
                break
        else:
            if len(lanes) == _MOST_AT_ONCE:
                left_out += 1
                continue
            lanes.append([one])
            open_until.append([end_ns])
    for number, lane in enumerate(lanes):
        yield Track(name if not number else f"{name} ({number + 1})", tuple(lane))
    if left_out:
        yield Track(f"{name} ({left_out} more that ran at once are left out)", ())
