"""How a trial ended: what ``outcome.json`` holds, and the file's one writer and one reader.

The file is the last of a trial: its absence means "run me again".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from typing import Any

from harness.errors import DamagedFile, RunError
from harness.store.contained import MOST_EVENTS
from harness.store.layout import TrialPaths

VERSION = 1  # 1: first


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
class Outcome:
    """One complete trial, as its file holds it."""

    cell_key: str
    trial: str
    """The name of its directory: ``trial-3.2``, ``cold`` or ``probe``."""
    ended: Ended
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
    marks: tuple[str, ...] = ()
    """What a reader must know of how it was started and observed."""
    ranks: tuple[RankEnd, ...] = ()
    memory: MemoryEvidence | None = None
    leftovers: int | None = None
    """Processes that outlived their rank and were killed."""
    survivors: int | None = None
    """Processes that even SIGKILL did not end in time."""
    clocks: Mapping[str, Any] = field(default_factory=dict)
    """By node, its clock's exchanges with the host's; `harness/store/node_clocks.py` reads them."""

    @property
    def is_ok(self) -> bool:
        """Whether it ended well."""
        return self.ended is Ended.OK

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.ended_wall_ns - self.started_wall_ns) / 1e9


_REQUIRED: Mapping[str, tuple[type, str]] = {
    "version": (int, "a whole number"),
    "cell_key": (str, "a text"),
    "trial": (str, "a text"),
    "outcome": (str, "a text"),
    "reason": (str, "a text"),
    "origin": (str, "a text"),
    "fingerprint": (str, "a text"),
    "mixed": (bool, "true or false"),
    "position": (int, "a whole number"),
    "started_wall_ns": (int, "a whole number"),
    "ended_wall_ns": (int, "a whole number"),
    "marks": (list, "a list"),
    "ranks": (list, "a list"),
}
_OPTIONAL: Mapping[str, tuple[type, str]] = {
    "memory": (dict, "an object"),
    "leftovers": (int, "a whole number"),
    "survivors": (int, "a whole number"),
    "clocks": (dict, "an object"),
}


def write_outcome(outcome: Outcome, trial: TrialPaths, *, settled: bool = True) -> None:
    """Write a trial's last file, the one that makes it count.

    One that is cheap to repeat need not be ``settled`` on the disk.
    """
    if settled:
        trial.files.settle(trial.root)
    held = {"version": VERSION, **vars(outcome)}
    held["outcome"] = held.pop("ended")
    held["ranks"] = [vars(one) for one in outcome.ranks]
    held["memory"] = None if outcome.memory is None else vars(outcome.memory)
    # On one line: indenting is slow, and each trial has one.
    text = json.dumps(held, sort_keys=True, allow_nan=False) + "\n"
    trial.files.write(trial.outcome, text, settled=settled)


def read_outcome(trial: TrialPaths) -> Outcome:
    """Read how a complete trial ended; say which file is wrong, and what of it."""
    file = trial.outcome
    raw = trial.files.read_object(file)
    if raw.get("version") != VERSION and isinstance(raw.get("version"), int):
        told = f"has version {raw['version']}; this bakeoff reads version {VERSION}"
        raise RunError(f"{file} {told}.")
    try:
        return _outcome(raw)
    except (TypeError, ValueError) as fault:
        raise DamagedFile(f"{file} is damaged: {fault}") from None


def read_complete(trial: TrialPaths) -> Outcome:
    """Read how a complete trial ended, and look whether what its ranks said can be read."""
    outcome = read_outcome(trial)
    for rank in outcome.ranks:
        with suppress(FileNotFoundError):  # it ended before its first word
            trial.files.checked(trial.events(rank.rank), MOST_EVENTS)
    return outcome


def _outcome(raw: Mapping[str, Any]) -> Outcome:
    there = {key: value for key, value in raw.items() if value is not None or key in _REQUIRED}
    for key, (kind, words) in {**_REQUIRED, **_OPTIONAL}.items():
        if key in _REQUIRED and key not in there:
            raise ValueError(f"{key} is missing")
        if key in there and not isinstance(there[key], kind):
            raise TypeError(f"{key} is not {words}")
    if raw["outcome"] not in list(Ended):
        raise ValueError(f"'{raw['outcome']}' is no outcome (known: {', '.join(Ended)})")
    given = {name: there[name] for name in Outcome.__dataclass_fields__ if name in there}
    given["ended"] = Ended(raw["outcome"])
    given["marks"] = tuple(raw["marks"])
    given["ranks"] = tuple(
        RankEnd(**_fields(RankEnd, rank, f"ranks[{index}]"))
        for index, rank in enumerate(raw["ranks"])
    )
    if "memory" in there:
        given["memory"] = MemoryEvidence(**_fields(MemoryEvidence, there["memory"], "memory"))
    return Outcome(**given)


def _fields(kind: type[RankEnd | MemoryEvidence], raw: Any, where: str) -> dict[str, Any]:
    """Choose what a class holds of an object."""
    if not isinstance(raw, dict):
        raise TypeError(f"{where} is not an object")
    known = fields(kind)
    for one in known:
        if one.default is MISSING and one.name not in raw:
            raise ValueError(f"{where}.{one.name} is missing")
    return {one.name: raw[one.name] for one in known if one.name in raw}
