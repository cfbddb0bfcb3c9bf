"""How a trial ended: what ``outcome.json`` holds, and the file's one writer and one reader.

The file is the last of a trial: its absence means "run me again".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from harness.errors import DamagedFile, RunError
from harness.store.contained import MIB, MOST_EVENTS, Contained
from harness.store.layout import TrialPaths
from harness.store.node_clocks import read_clocks
from harness.store.paths.names import path_part
from harness.store.seals import digest_of, digest_of_file
from harness.store.typed import WRITTEN, damage, read
from harness.worker.redaction.redact import redact_values

_MOST_LINE = 16 * MIB

VERSION = 2
"""1: first; 2: with digests of itself and of what figures are computed from"""
_UNSEALED = 1
_DIGEST = "digest"


class Ended(StrEnum):
    """The ways in which a trial ends."""

    OK = "ok"
    FAILED = "failed"
    TIMED_OUT = "timed-out"
    OUT_OF_MEMORY = "out-of-memory"
    UNSUPPORTED = "unsupported"
    CANCELLED = "cancelled"
    """Somebody interrupted it: it says nothing of its cell, and is made again."""
    NODE_LOST = "node-lost"


@dataclass(frozen=True)
class RankEnd:
    """How one rank ended."""

    rank: int
    host: str
    pid: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    cpu_s: float | None = None
    max_rss_bytes: int | None = None
    stopped: bool = False
    """Whether the agent was already ending the trial."""
    dropped_bytes: int = 0
    """What it printed beyond what is kept."""
    problem: str | None = None
    """Why it never started."""
    refused: bool = False
    """Whether its node could start no process for it, which is no fault of its cell."""
    started_ns: int | None = None
    """When its process was started, container and all, on the node's monotonic clock."""


@dataclass(frozen=True)
class MemoryEvidence:
    """How memory was limited, and what the kernel counted."""

    how: str
    """cgroup v1, cgroup v2, RLIMIT_DATA, none."""
    limit_bytes: int | None
    peak_bytes: int | None
    oom_kills: int | None


@dataclass(frozen=True)
class TurnsRecord:
    """How a trial took turns with others of its block, or why it ran alone."""

    alone: str = ""
    """Why it took no turns; empty if it did."""
    together: Mapping[str, str] = field(default_factory=dict)
    """The trials that lived at the same time, itself included: cell key -> name of the trial."""
    reference: str | None = None
    """The cell that all others of them are compared with, where that was known."""
    rounds: int = 0
    """How many were planned."""
    at_work_s: float = 0.0
    """The part of its life in which it did not stand still, in seconds."""
    known: tuple[float, ...] = ()
    """What earlier runs here found of its cell: logarithms of its rate in a turn after another
    trial's over that in a turn after its own."""


@dataclass(frozen=True)
class Outcome:
    """One complete trial, as its file holds it."""

    cell_key: str
    trial: str
    """The name of its directory: ``trial-3.2``, ``cold`` or ``probe``."""
    ended: Ended = field(metadata={"key": "outcome"})
    """``outcome`` in the file."""
    reason: str
    """One message to a person; empty where it ended well."""
    origin: str
    """measured, stand-in or simulated."""
    fingerprint: str
    mixed: bool
    """Whether earlier trials of its cell ran with another fingerprint."""
    position: int
    """When it ran: as which trial of its run."""
    started_wall_ns: int
    ended_wall_ns: int
    marks: tuple[str, ...] = field(default=(), metadata=WRITTEN)
    """What a reader must know of how it was started and observed."""
    proof: str = ""
    """What the examination of what was timed found, or why there was none; empty: it has none."""
    ranks: tuple[RankEnd, ...] = field(default=(), metadata=WRITTEN)
    memory: MemoryEvidence | None = None
    leftovers: int | None = None
    """Processes that outlived their rank and were killed."""
    survivors: int | None = None
    """Processes that even SIGKILL did not end in time."""
    clocks: Mapping[str, Any] = field(default_factory=dict)
    """By node, its clock's exchanges with the host's; `harness/store/node_clocks.py` reads them."""
    turns: TurnsRecord | None = None
    """None: its study asks for no turns, or it is a pilot, a cold trial or a probe."""
    files: Mapping[str, str] = field(default_factory=dict, compare=False)
    """A digest of its job, and of what each rank said, as the trial left them."""

    @property
    def is_ok(self) -> bool:
        """Whether it ended well."""
        return self.ended is Ended.OK

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.ended_wall_ns - self.started_wall_ns) / 1e9

    @property
    def at_work_s(self) -> float:
        """How long it kept the machine busy: while it stood still, others did."""
        return self.turns.at_work_s if self.turns and not self.turns.alone else self.seconds


def write_outcome(outcome: Outcome, trial: TrialPaths, *, settled: bool = True) -> None:
    """Write a trial's last file, the one that makes it count.

    One that is cheap to repeat need not be ``settled`` on the disk.
    """
    if settled:
        trial.files.settle(trial.root)
    held = {"version": VERSION, **vars(_redacted(outcome)), "files": _left_by(trial, outcome)}
    held["outcome"] = held.pop("ended")
    held["ranks"] = [vars(one) for one in held["ranks"]]
    for name in ("memory", "turns"):
        held[name] = None if held[name] is None else vars(held[name])
    # On one line: indenting is slow, and each trial has one.
    text = json.dumps({**held, _DIGEST: digest_of(held)}, sort_keys=True, allow_nan=False) + "\n"
    trial.files.write(trial.outcome, text, settled=settled)


def _left_by(trial: TrialPaths, outcome: Outcome) -> dict[str, str]:
    """Digest what a trial's figures are computed from; a rank may have ended unheard."""
    with trial.files.staying(trial.root) as files:
        left = (trial.job, *(trial.events(one.rank) for one in outcome.ranks))
        return {one.name: digest_of_file(files, one) for one in left if files.exists(one)}


def read_outcome(trial: TrialPaths, files: Contained | None = None) -> Outcome:
    """Read how a complete trial ended; say which file is wrong, and what of it."""
    file = trial.outcome
    raw = (files or trial.files).read_object(file)
    if raw.get("version") not in (_UNSEALED, VERSION) and type(raw.get("version")) is int:
        told = f"has version {raw['version']}; this bakeoff reads version {VERSION}"
        raise RunError(f"{file} {told}.")
    with damage(file):
        version = read(int, raw.get("version"), "version")
        outcome = read(Outcome, raw)
        where = (trial.root.parent.name, trial.root.name)
        if (outcome.cell_key, outcome.trial) != where:
            raise ValueError(f"it is of {outcome.trial} of the cell {outcome.cell_key}")
        for rank in outcome.ranks:
            path_part(rank.host, "node")
        read_clocks(outcome.clocks)
    if version != _UNSEALED:
        digest = raw.pop(_DIGEST, None)
        if digest != digest_of(raw):
            raise _changed(file)
    return _redacted(outcome)


def _changed(file: Path) -> DamagedFile:
    return DamagedFile(f"{file} was changed after its trial ended, and is not believed.")


def _redacted(outcome: Outcome) -> Outcome:
    """Hide the secrets that a message repeats."""
    ranks = outcome.ranks
    if any(one.problem for one in ranks):
        ranks = tuple(replace(one, problem=redact_values(one.problem)) for one in ranks)
    held = (outcome.reason, outcome.marks, outcome.proof)
    shown = redact_values(held)
    if shown is held and ranks is outcome.ranks:
        return outcome
    reason, marks, proof = shown
    return replace(outcome, reason=reason, marks=marks, proof=proof, ranks=ranks)


def read_complete(trial: TrialPaths) -> Outcome:
    """Read how a complete trial ended; refuse it where what its ranks said is another today."""
    with trial.files.staying(trial.root) as files:
        outcome = read_outcome(trial, files)
        for name, digest in outcome.files.items():
            file = trial.root / path_part(name, "file")
            if not files.exists(file) or digest_of_file(files, file) != digest:
                raise _changed(file)
        for rank in outcome.ranks:
            with suppress(FileNotFoundError):  # it ended before its first word
                _require_lines(files, trial.events(rank.rank))
    return outcome


def _require_lines(files: Contained, events: Path) -> None:
    """Refuse a file that is none, is too large, or has a line that DuckDB would not read over."""
    files.checked(events, MOST_EVENTS)
    if files.size(events) <= _MOST_LINE:
        return
    with files.reading(events) as file:
        while line := file.readline(_MOST_LINE):
            if len(line) == _MOST_LINE:
                raise DamagedFile(f"{events} is damaged: a line has {_MOST_LINE} bytes or more.")
