"""What the small files of a run directory say, as records; ``record_readers/`` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.store.layout import RunPaths, TrialName, TrialPaths
from harness.store.node_clocks import Clocks, read_clocks
from harness.store.outcome import Outcome
from harness.worker.redaction.redact import NAMES_A_PLACE
from harness.worker.scale import Scale

Scalar = str | bool | int | float | None


@dataclass(frozen=True)
class CellRecord:
    """One cell as the plan of its run states it."""

    key: str
    label: str
    workload: str
    framework: str
    environment: str
    strategy: str
    factors: Mapping[str, Scalar]
    """Each of its own type, as the plan was made of them."""
    scale: Scale
    unit: str
    parameters: int | None = None
    macs: int | None = None
    epoch_samples: int | None = None
    options: Mapping[str, Scalar] = field(default_factory=dict)
    content: str | None = None
    """What the files hold that it reads; None if it reads none."""
    own_files: str | None = None
    """Where a user's own files lie, if it reads those."""
    against: str | None = None
    """The cell of the other side that it is held against, where a run has two sides."""


@dataclass(frozen=True)
class TrialRecord:
    """One complete trial: where it lies, and how it ended."""

    run: str
    name: TrialName
    paths: TrialPaths
    outcome: Outcome

    @property
    def directory(self) -> Path:
        """Where its files lie."""
        return self.paths.root

    @cached_property
    def clocks(self) -> Clocks:
        """How the clocks of its nodes stood to the host's."""
        return read_clocks(self.outcome.clocks)

    @property
    def clock_bound_s(self) -> float | None:
        """How far moments of its nodes may be from where one axis shows them; None: unknown."""
        return self.clocks.bound_s(rank.host for rank in self.outcome.ranks)

    @property
    def hosts(self) -> dict[int, str]:
        """Where each rank ran."""
        return {rank.rank: rank.host for rank in self.outcome.ranks}


@dataclass(frozen=True)
class RunRecord:
    """One run: what was planned, and where it happened."""

    info: RunInfo
    paths: RunPaths
    study: str
    size: str | None
    """Which of the study's sizes; None: the study as it is written."""
    question: str
    cells: tuple[CellRecord, ...]
    holes: tuple[Hole, ...]
    reference: Mapping[str, str]
    """Task -> key of the declared reference cell."""
    planned: tuple[tuple[str, int], ...]
    """The trials that the plan asks for, by cell and block."""
    looks: tuple[int, ...]
    """After how many blocks it was to be decided whether to go on."""
    damaged: tuple[str, ...] = ()
    """What is wrong with files that the trials can be shown without."""
    is_narrowed: bool = False
    """Whether only some of the study's cells were asked for."""

    def cell(self, key: str) -> CellRecord:
        """Give a cell by its key."""
        return self._by_key[key]

    @cached_property
    def _by_key(self) -> Mapping[str, CellRecord]:
        return {cell.key: cell for cell in reversed(self.cells)}  # of two alike the first


EQUIVALENT = "equivalent"
NAMED = "named difference"
IN_PART = "proved in part"
NOT_CHECKED = "not checked"
NOT_RUN = "the equivalence gate was not run for this cell"
"""Why most cells are not checked."""
EXAMINATION_FAILED = "examination failed"
DIFFERS = "differs"
NOTHING = "nothing to check"
NO_NETWORK = "no network is trained, so there is nothing to compare"
NOT_EXAMINED = "not examined: "
"""Begins what is said of a trial whose timed steps were not examined."""


@dataclass(frozen=True)
class Gate:
    """What the equivalence gate said of a cell."""

    state: str
    """One of the states above."""
    detail: str
    not_shown: tuple[str, ...] = ()
    """What its examination left open, where it is proved in part."""


@dataclass(frozen=True)
class Hole:
    """A cell that was asked for and left out."""

    label: str
    why: str
    factors: Mapping[str, Any] = field(default_factory=dict)
    """With workload and framework; empty where the plan does not state them."""


@dataclass(frozen=True)
class Repetition:
    """How far repeating until intervals are narrow has come."""

    looks: tuple[int, ...]
    """After how many blocks it was decided, as declared before the first trial; empty: each."""
    blocks: int
    stopped: bool
    narrow: bool
    why: str
    left: Mapping[str, int] = field(default_factory=dict)
    """Keys of the cells that no further block needed, and after how many blocks."""

    def __str__(self) -> str:
        times = ", ".join(map(str, self.looks))
        said = "stopped" if self.stopped else "not finished"
        looks = f"declared looks: after {times} blocks" if times else "looked at after each block"
        return f"Repeating {said}: {self.why} ({looks})."


@dataclass(frozen=True)
class RunInfo:
    """Where results came from."""

    name: str = field(metadata={NAMES_A_PLACE: True})
    directory: str = field(metadata={NAMES_A_PLACE: True})
    title: str
    started_wall_ns: int
    platform: Mapping[str, Any]
    provenance: Mapping[str, Any]
    measure: Mapping[str, Any]
    environments: Mapping[str, Any]
    seed: int
    repetition: Repetition | None = None
    """None where the number of blocks is fixed."""

    @property
    def is_simulated(self) -> bool:
        """Whether its trials played a model."""
        launcher = self.platform.get("launcher") or {}
        return bool(launcher.get("name") == "simulated")
