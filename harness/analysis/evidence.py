"""Name what a page can show beside the estimates, where it was measured.

Each is a door: who measures such a thing fills the values in, and the page has its section.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.verdicts.results import Estimate


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
class Unread:
    """A source that gave nothing on a node, and why."""

    node: str
    source: str
    reason: str


@dataclass(frozen=True)
class PhaseUse:
    """What one node did in one phase of a drawn trial; None is unknown."""

    trial: str
    node: str
    phase: str
    seconds: float
    rank_cores: float | None
    cores_busy: float | None
    memory_bytes: float | None
    disk_bytes_per_s: float | None
    network_bytes_per_s: float | None
    gpu_busy: float | None
    power_w: float | None


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
class Rung:
    """One step of a ladder: how fast the chain is up to here."""

    name: str
    rate: Estimate
    cpu_s_per_gb: float | None = None
    """CPU time spent per 10^9 bytes, where it was measured."""


@dataclass(frozen=True)
class Ladder:
    """From the bare device up to the whole training, each rung with one thing more to do."""

    title: str
    kind: str
    """input or checkpoint."""
    state: str
    """cold, warm …: what the caches held."""
    rungs: tuple[Rung, ...]
    """All in one unit, from the device upwards."""
    bottleneck: str = ""
    """storage-, CPU-, compute- or harness-bound; empty where nobody can tell."""
    source: str = ""


@dataclass(frozen=True)
class Energy:
    """What one cell draws in its steady window, and what it gets done with that."""

    name: str
    parts_w: tuple[tuple[str, float], ...]
    """Mean power by part: GPU, CPU package, memory; only what was read."""
    work_per_joule: Estimate | None
    source: str
    """Which meter, and what it covers and averages over."""


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
    ladders: tuple[Ladder, ...] = ()
    energy: tuple[Energy, ...] = ()
    findings: tuple[Finding, ...] = ()
    unread: tuple[Unread, ...] = ()
    phases: tuple[PhaseUse, ...] = ()
