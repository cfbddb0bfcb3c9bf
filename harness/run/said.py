"""This file reads the ends of a rank's files: what it did last, how fast it goes, what it said.

Only the last few kilobytes are read, so that looking at a running trial costs next to nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.run.outcome import Said
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
    return Said(stderr=_tail(trial.stderr(rank), _TAIL).decode(errors="replace"), **found)


@dataclass(frozen=True)
class Glance:
    """What a running trial does at the moment."""

    phase: str
    steps_per_s: float | None


def glance(trial: TrialPaths) -> Glance | None:
    """Look at a running trial's first rank; None before it said anything."""
    for event in _events(trial.events(0), _GLANCE):
        if event["event"] == "window":
            elapsed_s = (event["end"] - event["start"]) / 1e9
            rate = event["steps"] / elapsed_s if elapsed_s > 0 else None
            return Glance(event["phase"], rate)
        if event["event"] == "phase":
            return Glance(event["name"], None)
    return None


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
