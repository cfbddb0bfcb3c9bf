"""Find the trial that a run is busy with, and what its first rank last said."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.store.files import read_json
from harness.store.layout import RunPaths, TrialPaths

_TAIL = 1 << 14


@dataclass(frozen=True)
class Said:
    """Where a running trial stands."""

    label: str
    trial: str
    phase: str | None
    steps: int | None
    steps_per_s: float | None
    loss: float | None


def running(paths: RunPaths) -> TrialPaths | None:
    """Find the trial that was begun last and has not ended; else the last that ended."""
    jobs = sorted(paths.cells.glob("*/*/job.json"), key=lambda one: one.stat().st_mtime_ns)
    trials = [TrialPaths(job.parent) for job in jobs]
    unfinished = [trial for trial in trials if not trial.outcome.is_file()]
    return next(reversed(unfinished or trials), None)


def said(paths: RunPaths, trial: TrialPaths) -> Said:
    """Read the end of what the first rank said, and the run's plan."""
    plan = read_json(paths.plan)
    key = trial.root.parent.name
    labels = {cell["key"]: cell["label"] for cell in plan["cells"]}
    phase = steps = rate = loss = None
    for event in _last_events(trial.events(0)):
        if event["event"] == "window" and steps is None:
            elapsed_s = (event["end"] - event["start"]) / 1e9
            steps = event["first"] + event["steps"]
            rate = event["steps"] / elapsed_s if elapsed_s > 0 else None
            phase = phase or event["phase"]
        elif event["event"] == "phase" and phase is None:
            phase = event["name"]
        elif event["event"] == "values" and loss is None:
            loss = event["values"].get("loss")
    return Said(
        label=labels.get(key, key),
        trial=trial.root.name,
        phase=phase,
        steps=steps,
        steps_per_s=rate,
        loss=loss,
    )


def _last_events(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            lines = file.read().split(b"\n")
    except OSError:
        return
    for text in reversed(lines):
        try:
            event = json.loads(text)
        except ValueError:
            continue  # cut by the window, or still being written
        if isinstance(event, dict) and "event" in event:
            yield event
