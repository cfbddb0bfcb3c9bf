"""This file names what a page can show beside the estimates, where it was measured.

Each is a door: who measures such a thing fills the values in, and the page has its section.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Mark:
    """A phase or a step on the time axis of a timeline."""

    name: str
    start_s: float
    end_s: float
    kind: str = "phase"
    """phase or step."""


@dataclass(frozen=True)
class Channel:
    """One quantity over time: readings at times, and where nothing was read."""

    name: str
    """The device, core or node, for example "gpu0"."""
    times_s: Sequence[float]
    values: Sequence[float]
    gaps_s: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Timeline:
    """Like quantities of many devices on one time axis."""

    title: str
    unit: str
    low: float
    high: float
    """The ends of the colour scale, for example 0 and 100 %."""
    channels: tuple[Channel, ...]
    interval_s: float
    """How often a reading was due."""
    marks: tuple[Mark, ...] = ()
    clock_bound_s: float | None = None
    """How far the clocks of the nodes may be apart; nothing is drawn finer."""
    source: str = ""
    """What was read and where the raw readings lie."""


@dataclass(frozen=True)
class StepSplit:
    """Where the time of one cell's step goes."""

    name: str
    parts_s: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Ceiling:
    """A limit of the machine, and whether it was measured or is declared."""

    name: str
    flops: float | None
    """Operations per second; None where the ceiling is a bandwidth."""
    bytes_per_s: float | None
    how: str


@dataclass(frozen=True)
class RoofPoint:
    """What one cell reached below the roof."""

    name: str
    intensity: float
    """Operations per byte."""
    flops: float


@dataclass(frozen=True)
class Finding:
    """A statement of a paper, beside what was measured here."""

    question: str
    paper: str
    measured: str


@dataclass(frozen=True)
class Evidence:
    """All that a page shows beside the results; what is empty has no section."""

    timelines: tuple[Timeline, ...] = ()
    splits: tuple[StepSplit, ...] = ()
    ceilings: tuple[Ceiling, ...] = ()
    roof_points: tuple[RoofPoint, ...] = ()
    findings: tuple[Finding, ...] = ()
