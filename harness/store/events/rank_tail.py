"""Read the ends of a rank's files: how far it came, why it failed, the end of its stderr.

Only the last kilobytes are read, so that looking at a running trial costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import DamagedFile
from harness.store.events.known_events import event_of
from harness.store.layout import TrialPaths

_TAIL = 1 << 16
_HEAD = 1 << 16


@dataclass(frozen=True)
class RankTail:
    """What the ends of one rank's files tell."""

    phase: str | None = None
    """The last phase it entered."""
    finished: bool = False
    failed_kind: str | None = None
    """unsupported, out-of-memory, error."""
    failed_message: str = ""
    stderr: str = ""
    """Its last part."""


def read_rank_tail(trial: TrialPaths, rank: int) -> RankTail:
    """Read the ends of one rank's events and stderr."""
    fields: dict[str, Any] = {}
    for event in last_events(trial, rank, _TAIL):
        kind = event["event"]
        if kind == "finished":
            fields["finished"] = True
        elif kind == "failed":
            fields["failed_kind"] = event["kind"]
            fields["failed_message"] = event["message"]
        elif kind == "phase" and "phase" not in fields:
            fields["phase"] = event["name"]
        elif kind == "window" and "phase" not in fields:
            fields["phase"] = event["phase"]
        if "phase" in fields and ("finished" in fields or "failed_kind" in fields):
            break
    return RankTail(
        stderr=_end(trial, trial.stderr(rank), _TAIL).decode(errors="replace"), **fields
    )


def has_stand_in(trial: TrialPaths, ranks: Iterable[int]) -> bool:
    """Tell stand-ins from real frameworks: their versions confess what they are."""
    return any("stand-in" in one for rank in ranks for one in _versions(trial, rank))


def _versions(trial: TrialPaths, rank: int) -> Iterable[str]:
    told = next((one for one in first_events(trial, rank) if one["event"] == "versions"), None)
    return () if told is None else map(str, told["versions"].values())


def first_events(trial: TrialPaths, rank: int) -> Iterator[dict[str, Any]]:
    """Give a rank's first events, oldest first; a line that is not whole is left out."""
    try:
        head = trial.files.read_begin(trial.events(rank), _HEAD)
    except (FileNotFoundError, DamagedFile):
        return
    yield from _events(head.split(b"\n"))


def last_events(trial: TrialPaths, rank: int, size: int) -> Iterator[dict[str, Any]]:
    """Give the events in a rank's last bytes, newest first; lines that are cut are left out."""
    yield from _events(reversed(_end(trial, trial.events(rank), size).split(b"\n")))


def _events(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for text in lines:
        event = event_of(text)
        if event is not None:  # else cut by what is read, by a crash, or still being written
            yield event


def _end(trial: TrialPaths, path: Path, size: int) -> bytes:
    try:
        return trial.files.read_end(path, size)
    except (FileNotFoundError, DamagedFile):
        return b""
