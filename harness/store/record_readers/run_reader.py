"""Read what a run planned, and where it happened, from the files of its directory.

Event streams are not read here: they are large, and ``dataset.py`` leaves them to DuckDB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import DamagedFile, RunError
from harness.store.layout import RunPaths
from harness.store.paths.names import path_part
from harness.store.paths.run_format import VERSION, up_to_date
from harness.store.records import CellRecord, Hole, RunInfo, RunRecord
from harness.store.run_directory.session_log import damaged_lines
from harness.store.typed import damage, read
from harness.worker.input.dataset import UINT16
from harness.worker.network.workload import TOKENS
from harness.worker.redaction.redact import redact_text, redact_values

NUMBERS = frozenset(
    {
        *(
            "nodes",
            "node",
            "ranks_per_node",
            "devices_per_rank",
            "batch",
            "global_batch",
            "sequence",
            "threads",
        ),
        *(
            "interop_threads",
            "cell_seed",
            "samples",
            "reader_threads",
            "prefetch",
            "buffers",
            "buffer_samples",
        ),
        *("compute_ms", "checkpoint_every", "stripe_count", "stripe_mb", "bucket_mb"),
        "accumulate",
        "message_bytes",
    }
)
"""The factors that are calculated with (a contract test holds them to the vocabulary)."""
FLAGS = frozenset(
    {
        *("compile", "communicate", "container", "decode", "deterministic", "onednn", "peer"),
        "recompute",
    }
)
"""The factors that are on or off (held to the vocabulary as well)."""
_NUMBER: Any = float | None
_FLAG: Any = bool | None


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
        size=study.size,
        question=redact_text(study.question or ""),
        is_narrowed=bool(study.only),
        cells=cells,
        holes=stated.holes,
        reference=stated.reference or {},
        planned=stated.order,
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
    size: str | None = None
    only: tuple[str, ...] = ()


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
    added: tuple[int, ...] | None = None


@dataclass(frozen=True)
class _Identity:
    """What is read here of ``run.json``."""

    title: str | None = None
    started_wall_ns: int | None = None


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
    for name in FLAGS & cell.factors.keys():
        read(_FLAG, cell.factors[name], f"{where}.factors.{name}")
    is_read = cell.factors.get("format") == UINT16
    if is_read:
        read(int, cell.factors.get("samples"), f"{where}.factors.samples")
    if is_read or cell.unit == TOKENS:
        length = read(int, cell.factors.get("sequence"), f"{where}.factors.sequence")
        if length < 1:
            raise ValueError(f"{where}.factors.sequence: a text has one token or more")
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
