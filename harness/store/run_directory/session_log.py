"""Append to the log of what sessions of a run did, and read it again."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.errors import DamagedFile
from harness.store.json_text import parse_line
from harness.store.layout import RunPaths
from harness.store.typed import read
from harness.worker.redaction.redact import redact_values

_NAMED = 3
"""So many damaged lines of the log are named."""


def log(paths: RunPaths, what: str, **fields: Any) -> None:
    """Append one entry to the session's log."""
    entry = {"wall_ns": time.time_ns(), "what": what, **redact_values(fields)}
    paths.files.append_line(paths.log, entry)


@dataclass(frozen=True)
class LogEntry:
    """What is read again of an entry of the session's log."""

    what: str
    cell: str = ""
    trial: str = ""
    block: int = 0
    trials: tuple[tuple[str, str], ...] | int = ()
    """(cell key, trial) of those meant, or how many there are."""
    left: Mapping[str, int] = field(default_factory=dict)
    """After which block a cell needed no further one."""


@dataclass(frozen=True)
class Log:
    """The entries of the session's log, the earliest first."""

    entries: tuple[LogEntry, ...]
    damaged: tuple[str, ...]
    """What is wrong with the lines that hold none."""


def read_log(paths: RunPaths) -> Log:
    """Read the log; a damaged line costs that line, and one cut short by a crash is none."""
    damaged: list[str] = []
    return Log(tuple(_entries(paths, damaged)), tuple(damaged))


def damaged_lines(paths: RunPaths) -> tuple[str, ...]:
    """Say what is wrong with lines of the log, and keep nothing of the others."""
    damaged: list[str] = []
    deque(_entries(paths, damaged), maxlen=0)
    return tuple(damaged)


def _entries(paths: RunPaths, damaged: list[str]) -> Iterator[LogEntry]:
    """Give the log's entries; name the first lines that hold none, and were not cut by a crash."""
    try:
        for number, line in paths.files.lines(paths.log):
            try:
                yield read(LogEntry, parse_line(line))
            except ValueError as fault:
                if not line.startswith(b"{") or line.endswith(b"}\n"):
                    where = f":{number} is damaged: {fault}. It is left out."
                    more = ": further lines are damaged, and left out."
                    if len(damaged) <= _NAMED:
                        damaged.append(f"{paths.log}{where if len(damaged) < _NAMED else more}")
    except DamagedFile as problem:
        damaged.append(str(problem))
