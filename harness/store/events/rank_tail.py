"""Read the ends of a rank's files: what it did last, how fast it goes, what it said.

Only the last few kilobytes are read, so that looking at a running trial costs next to nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.store.layout import TrialPaths

_GLANCE = 4096
_TAIL = 1 << 16


def said(trial: TrialPaths, rank: int) -> Said:
    """Gather what one rank left behind."""
    found: dict[str, Any] = {}
    for event in _events(trial.events(rank), _TAIL):
        kind = event["event"]
        if kind == "finished":
            found["finished"] = True
        elif kind == "failed":
            found["failed_kind"] = event["kind"]
            found["failed_message"] = event["message"]
        elif kind == "phase" and "phase" not in found:
            found["phase"] = event["name"]
        elif kind == "window" and "phase" not in found:
            found["phase"] = event["phase"]
        if "phase" in found and ("finished" in found or "failed_kind" in found):
            break
    return Said(stderr=_tail(trial.stderr(rank), _TAIL).decode(errors="replace"), **found)


def has_stand_in(trial: TrialPaths, ranks: Iterable[int]) -> bool:
    """Tell stand-ins from real frameworks: their versions confess what they are."""
    return any("stand-in" in one for rank in ranks for one in _versions(trial.events(rank)))


@dataclass(frozen=True)
class Glance:
    """What a running trial does at the moment."""

    phase: str
    rate: float | None
    """Units of work per second, over all ranks."""


def glance(trial: TrialPaths, unit: str) -> Glance | None:
    """Look at a running trial through its first rank; None before it said anything."""
    for event in _events(trial.events(0), _GLANCE):
        if event["event"] == "window":
            elapsed_s = (event["end"] - event["start"]) / 1e9
            work = _work_per_step(trial, unit)
            if work is None or elapsed_s <= 0:
                return Glance(event["phase"], None)
            return Glance(event["phase"], event["steps"] * work / elapsed_s)
        if event["event"] == "phase":
            return Glance(event["name"], None)
    return None


def _work_per_step(trial: TrialPaths, unit: str) -> float | None:
    """Read from the first lines how much work a step of all ranks does."""
    ranks = 1
    with trial.events(0).open("rb") as file:
        for text in file.read(_TAIL).split(b"\n")[:-1]:
            event = json.loads(text)
            if event["event"] == "anchor":
                ranks = event["size"]
            elif event["event"] == "units":
                work: float | None = event["units"].get(unit)
                return None if work is None else work * ranks
    return None


def _versions(path: Path) -> Iterable[str]:
    try:
        with path.open("rb") as file:
            lines = file.read(_TAIL).split(b"\n")[:-1]
    except FileNotFoundError:
        return ()
    events = (json.loads(text) for text in lines)
    said = next((event for event in events if event["event"] == "versions"), None)
    return () if said is None else map(str, said["versions"].values())


def _events(path: Path, size: int) -> Iterator[dict[str, Any]]:
    """Give the last events, newest first; lines cut by the window or by a crash are left out."""
    for text in reversed(_tail(path, size).split(b"\n")):
        try:
            event = json.loads(text)
        except ValueError:
            continue
        if isinstance(event, dict) and "event" in event:
            yield event


def _tail(path: Path, size: int) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return b""
    try:
        end = os.fstat(descriptor).st_size
        return os.pread(descriptor, size, max(0, end - size))
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class Said:
    """What one rank left in its files."""

    phase: str | None = None
    """The last phase it entered."""
    finished: bool = False
    failed_kind: str | None = None
    """unsupported, out-of-memory, error."""
    failed_message: str = ""
    stderr: str = ""
    """The end of what it complained of."""
