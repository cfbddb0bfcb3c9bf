"""Read the small JSON files of a run directory into records.

Event streams are not read here: they are large, and ``dataset.py`` leaves them to DuckDB.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.errors import DamagedFile, RunError
from harness.store.layout import VERSION, RunPaths, TrialName, TrialPaths, up_to_date
from harness.store.node_clocks import Clocks, read_clocks
from harness.store.outcome import Outcome, read_complete
from harness.store.paths.names import path_part
from harness.store.run_directory import damaged_lines
from harness.store.typed import damage, read
from harness.worker.redaction.redact import NAMES_A_PLACE, redact_text, redact_values
from harness.worker.scale import Scale

Scalar = str | bool | int | float | None
NUMBERS = frozenset(
    {
        *("nodes", "ranks_per_node", "devices_per_rank", "batch", "global_batch", "threads"),
        *("interop_threads", "samples", "reader_threads", "prefetch", "buffers", "buffer_samples"),
        *("compute_ms", "checkpoint_every", "stripe_count", "stripe_mb", "bucket_mb"),
        "message_bytes",
    }
)
"""The factors that are calculated with (a contract test holds them to the vocabulary)."""
_NUMBER: Any = float | None


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
    question: str
    cells: tuple[CellRecord, ...]
    holes: tuple[Hole, ...]
    reference: Mapping[str, str]
    """Task -> key of the declared reference cell."""
    planned: Mapping[int, int]
    """How many trials the plan asks for in each block."""
    looks: tuple[int, ...]
    """After how many blocks it was to be decided whether to go on."""
    damaged: tuple[str, ...] = ()
    """What is wrong with files that the trials can be shown without."""


def read_run(directory: Path) -> RunRecord:
    """Read everything about a run but its trials; refuse what is no run or of another format."""
    paths = RunPaths(directory.resolve())
    if not paths.files.exists(paths.plan):
        raise RunError(
            f"{directory} is not a run: it has no {paths.plan.name}. "
            "`bakeoff list runs` names the runs in this folder."
        )
    plan = up_to_date(directory, paths.files.read_object(paths.plan))
    with damage(paths.plan):
        stated = read(_Plan, {**plan, "measure": plan.get("measure") or {}})
        read(_Measure, stated.measure, "measure")
        cells = tuple(_cell(raw, f"cells[{index}]") for index, raw in enumerate(stated.cells))
    others = _Others(paths)
    identity = others.identity()
    study = stated.study
    name = directory.resolve().name
    info = RunInfo(
        name=name,
        directory=str(directory),
        title=redact_text(study.title or identity.title or name),
        started_wall_ns=identity.started_wall_ns or 0,
        platform=redact_values(stated.platform or {}),
        provenance=redact_values(others.read(paths.provenance)),
        measure=redact_values(stated.measure),
        environments=redact_values(others.environments()),
        seed=stated.seed or 0,
    )
    return RunRecord(
        info=info,
        paths=paths,
        study=study.name or "",
        question=redact_text(study.question or ""),
        cells=cells,
        holes=stated.holes,
        reference=stated.reference or {},
        planned=Counter(block for _, block in stated.order),
        looks=stated.looks,
        damaged=(*others.damaged, *damaged_lines(paths)),
    )


class _Others:
    """Reads what stands beside a run's plan; a damaged file is named, and counts as empty."""

    def __init__(self, paths: RunPaths) -> None:
        self._paths = paths
        self.damaged: list[str] = []

    def read(self, path: Path) -> dict[str, Any]:
        """Read one object."""
        try:
            return _object(self._paths, path)
        except RunError as problem:
            self.damaged.append(f"{problem} It is left out.")
            return {}

    def identity(self) -> _Identity:
        """Read what the run's identity adds to its plan."""
        raw = self.read(self._paths.run)
        try:
            with damage(self._paths.run):
                return read(_Identity, raw)
        except DamagedFile as problem:
            self.damaged.append(f"{problem} It is left out.")
            return _Identity()

    def environments(self) -> dict[str, dict[str, Any]]:
        """Read every environment that was recorded."""
        folder, suffix = self._paths.root / "environments", ".json"
        try:
            there = self._paths.files.files(folder)
        except FileNotFoundError:
            return {}
        except DamagedFile as problem:
            self.damaged.append(f"{problem} It is left out.")
            return {}
        return {
            name.removesuffix(suffix): self.read(folder / name)
            for name in there
            if name.endswith(suffix)
        }


@dataclass(frozen=True)
class _Study:
    """What ``plan.json`` says of the study."""

    name: str | None = None
    title: str | None = None
    question: str | None = None


@dataclass(frozen=True)
class _Plan:
    """What is read here of ``plan.json``."""

    cells: tuple[Mapping[str, Any], ...]
    study: _Study = field(default_factory=_Study)
    platform: Mapping[str, Any] | None = None
    measure: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    holes: tuple[Hole, ...] = ()
    reference: Mapping[str, str] | None = None
    order: tuple[tuple[str, int], ...] = ()
    looks: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Measure:
    """What is looked at again of how was measured."""

    trials: int | None = None
    tolerate: tuple[str, ...] | None = None
    until_interval: float | None = None
    stop: str | None = None
    budget_s: float | None = None


@dataclass(frozen=True)
class _Identity:
    """What is read here of ``run.json``."""

    title: str | None = None
    started_wall_ns: int | None = None


@dataclass(frozen=True)
class Trials:
    """The complete trials of a run, in order of cell, block and attempt."""

    records: tuple[TrialRecord, ...]
    damaged: tuple[str, ...]
    """What is wrong with those that cannot be read."""


def read_trials(run: RunRecord) -> Trials:
    """Read the complete trials of a run; one that is damaged does not hide the others."""
    records: list[TrialRecord] = []
    damaged: list[str] = []
    files = run.paths.files
    if not files.exists(run.paths.cells):
        return Trials((), ())
    for key in files.folders(run.paths.cells):
        try:
            names = [TrialName.parse(one) for one in files.folders(run.paths.cells / key)]
        except DamagedFile as problem:
            damaged.append(f"{problem} Its trials are left out.")
            continue
        for name in sorted(name for name in names if name is not None):
            try:
                records.append(_record(run, name, run.paths.trial(key, name)))
            except DamagedFile as problem:
                if _has_ended(run.paths, key, name):
                    damaged.append(
                        f"{problem} The trial is left out; "
                        f"`bakeoff resume {run.info.directory}` sets it aside and runs it again."
                    )
    return Trials(tuple(records), tuple(damaged))


def _has_ended(paths: RunPaths, key: str, name: TrialName) -> bool:
    """Tell whether a trial has an outcome, or cannot be looked at."""
    try:
        return paths.files.exists(paths.trial(key, name).outcome)
    except DamagedFile:
        return True


def read_trial(run: RunRecord, trial: TrialPaths) -> TrialRecord:
    """Read one complete trial."""
    name = TrialName.parse(trial.root.name)
    assert name is not None, f"{trial.root} is no trial"
    return _record(run, name, trial)


def _record(run: RunRecord, name: TrialName, trial: TrialPaths) -> TrialRecord:
    return TrialRecord(run.info.name, name, trial, read_complete(trial))


def _cell(raw: Mapping[str, Any], where: str) -> CellRecord:
    cell = read(
        CellRecord,
        {
            **raw,
            "environment": raw.get("environment") or raw.get("framework"),
            "strategy": raw.get("strategy") or "none",
            "options": raw.get("options") or {},
        },
        where,
    )
    path_part(cell.key, "cell's key")
    for name in NUMBERS & cell.factors.keys():
        read(_NUMBER, cell.factors[name], f"{where}.factors.{name}")
    return cell


def _object(paths: RunPaths, path: Path) -> dict[str, Any]:
    """Read an object; empty where there is no file."""
    if not paths.files.exists(path):
        return {}
    raw = paths.files.read_object(path)
    version = raw.get("version", VERSION)
    if type(version) is int and version > VERSION:
        raise RunError(
            f"{path} has version {version}; this bakeoff reads up to {VERSION}. Update bakeoff."
        )
    return raw


EQUIVALENT = "equivalent"
NAMED = "named difference"
IN_PART = "proved in part"
NOT_CHECKED = "not checked"
EXAMINATION_FAILED = "examination failed"
DIFFERS = "differs"
NOTHING = "nothing to check"
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


@dataclass(frozen=True)
class Repetition:
    """How far repeating until intervals are narrow has come."""

    looks: tuple[int, ...]
    """After how many blocks it was decided, as declared before the first trial; empty: each."""
    blocks: int
    stopped: bool
    narrow: bool
    why: str

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
