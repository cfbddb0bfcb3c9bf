"""Evidence that sections show beside the results, gathered only where a section needs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.analysis.between_runs.run_comparison import Versus
    from harness.analysis.floors.kept_floors import MachineFloors
    from harness.store.record_readers.attribution import Attribution
    from harness.store.record_readers.ceilings import Ceiling


@dataclass(frozen=True)
class Mark:
    """A phase or a step on the time axis of a timeline."""

    name: str
    start_s: float
    end_s: float
    kind: str = "phase"
    """phase or step."""
    group: str = ""
    """What a phase that comes several times is called in all of them."""


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
    recording: str = ""
    """Which trial's node it is of; all of one recording share their axis."""

    @property
    def full_title(self) -> str:
        """The title, followed by what the timeline is of."""
        return f"{self.recording}: {self.title}" if self.recording else self.title


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
class Recordings:
    """What the collector recorded of the trials that are drawn."""

    timelines: tuple[Timeline, ...] = ()
    phases: tuple[PhaseUse, ...] = ()
    unread: tuple[Unread, ...] = ()


LIMITS = frozenset({"attributions", "ceilings"})
"""What has to be gathered to say what holds cells back."""
Questions = Mapping[str, Sequence[Mapping[str, Any]]]
"""What each run's study asks about its paper, by the name of the run."""


@dataclass(frozen=True)
class Evidence:
    """The evidence gathered beside the results; None where no section asked for it."""

    recordings: Recordings | None = None
    questions: Questions | None = None
    damaged: tuple[str, ...] = ()
    """What could not be read, and was left out."""
    attributions: Mapping[str, Attribution | str] | None = None
    """What the steps of one run's cells divide into, or why that is not known, by cell."""
    floors: MachineFloors | None = None
    """The least that this machine needed for each layer, where the run was measured on it."""
    ceilings: Sequence[Ceiling] | None = None
    """What kernels reached at most on the machine of one run."""
    losses: Sequence[tuple[Any, ...]] | None = None
    """Of a screen of nodes: cell, trial, rank, step and value."""
    comparison: Versus | None = None
    """The second of exactly two runs against the first, where a page is to compare them."""

    @property
    def gathered(self) -> frozenset[str]:
        """Name what was gathered."""
        return frozenset(one.name for one in fields(self) if getattr(self, one.name) is not None)

    @property
    def timelines(self) -> tuple[Timeline, ...]:
        """Give the timelines; none where no section asked for them."""
        return self.recordings.timelines if self.recordings else ()
