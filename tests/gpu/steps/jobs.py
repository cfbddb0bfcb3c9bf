"""One cell's job, as a trial's worker is given it, in a folder of the day's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.worker.job import VERSION
from tests.gpu.answer import Broken, Unfinished
from tests.gpu.day import Day
from tests.gpu.steps.cells import selection

_EVENTS = "events.0.jsonl"


def cells(day: Day, framework: str, changed: Mapping[str, object]) -> list[Mapping[str, Any]]:
    """Plan the cells of the study `frameworks`; give what their jobs are made from."""
    planned = day.bakeoff("plan", *selection(day, (framework,), changed), "--json", limit_s=60)
    if planned.code:
        raise Broken(f"bakeoff plan: {planned.last}")
    found: list[Mapping[str, Any]] = planned.json()["cells"]
    return found


def work(
    day: Day,
    cell: Mapping[str, Any],
    kind: str,
    limit_s: float,
    changed: Mapping[str, object],
    **variables: str,
) -> list[dict[str, Any]]:
    """Let a worker do a cell's job; give its events."""
    if limit_s <= 0:
        raise Unfinished("no time was left")
    folder = folder_of(day, cell, kind)
    (folder / _EVENTS).unlink(missing_ok=True)
    job = folder / "job.json"
    job.write_text(json.dumps({**_job(day, cell, folder), **changed}), encoding="utf-8")
    done = day.framework_python("-m", "harness.worker", str(job), limit_s=limit_s, **variables)
    events = _events(folder)
    if done.code:
        failed = [one["message"].partition("\n")[0] for one in events if one["event"] == "failed"]
        raise Broken(failed[-1] if failed else done.last)
    return events


def events_of(day: Day, cell: Mapping[str, Any], kind: str) -> list[dict[str, Any]] | None:
    """Give the events of a job that ended well before; None for none."""
    events = _events(folder_of(day, cell, kind))
    return events if events and events[-1]["event"] == "finished" else None


def _events(folder: Path) -> list[dict[str, Any]]:
    said = folder / _EVENTS
    lines = said.read_text(encoding="utf-8").splitlines() if said.is_file() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def folder_of(day: Day, cell: Mapping[str, Any], kind: str) -> Path:
    """Give the folder that a cell's job of one kind works in."""
    folder = day.work / kind / str(cell["key"])
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _job(day: Day, cell: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    what = ("workload", "workload_module", "framework", "adapter_module", "environment")
    how = ("strategy", "scale", "factors", "options")
    return {
        **{name: cell[name] for name in (*what, *how)},
        "version": VERSION,
        "purpose": "trial",
        "cell_key": cell["key"],
        "trial": "alone",
        "warmup": {"steps": None, "seconds": 0.5 if day.is_dry else 3.0},
        "until": {"steps": None, "seconds": 0.5 if day.is_dry else 5.0},
        "seed": 1,
        "directory": str(folder),
        "paths": {},
    }
