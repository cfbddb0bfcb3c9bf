"""The timed loop's windows against the device's own clock, marked from outside the adapter.

The worker, the loop and the adapter are those of a trial; ``scripts/marked_adapter.py`` stands
between loop and adapter and says what it marked.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from tests.gpu.answer import Answer, Broken, Unfinished
from tests.gpu.day import Day
from tests.gpu.steps import jobs

LIMIT_S = 470.0
WORKLOADS = ["tinycnn", "resnet50"]
"""One whose windows hold many steps, one whose windows hold one."""
_EARLY_S = 50e-6
"""How much earlier than the device's event the loop's clock may stop: both clocks' resolution."""
_LATE_S, _LATE = 200e-6, 0.02
"""How much longer than the device's span a window may be: starting and waking up."""
_APART = 0.05
"""How far steps in the loop and steps without it may be apart."""


@dataclass(frozen=True)
class Window:
    """One window as the loop timed it and as it was marked."""

    steps: int
    loop_s: float
    device_s: float | None
    left_s: float | None


def compare(day: Day, framework: str) -> Answer:
    """Work one job for each cell, marked, and judge its windows."""
    version = day.framework(framework)["version"]
    changed = {} if day.is_dry else {"matrix.workload": WORKLOADS}
    cells = jobs.cells(day, framework, changed)
    lines, measured, faults = [f"{framework} {version} on {day.device}"], {}, []
    end = time.monotonic() + LIMIT_S
    for cell in cells:
        label = cell["label"]
        try:
            windows, told = _work(day, cell, end - time.monotonic())
        except Broken as why:
            faults.append(f"{label}: {why}")
            continue
        except Unfinished as why:
            done = f"{len(measured)} cells marked so far, the next call goes on"
            raise Unfinished(f"{label}: {why}: {done}") from None
        words, wrong = judge(windows, told, is_judged=not day.is_dry)
        lines += [f"{label}: {word}" for word in words]
        faults += [f"{label}: {word}" for word in wrong]
        measured[label] = {**told, "windows": [vars(one) for one in windows]}
    return Answer(tuple(lines), measured, tuple(faults))


def judge(
    windows: Sequence[Window], told: Mapping[str, Any], *, is_judged: bool
) -> tuple[list[str], list[str]]:
    """Say what the marks show, and what of it must not be; a rehearsal's speed is not judged."""
    loop_s = median(one.loop_s for one in windows)
    most = max(one.steps for one in windows)
    lines = [f"{len(windows)} windows of up to {most} steps, {_text(loop_s)} each (median)"]
    faults = []
    late = [one.loop_s - one.device_s for one in windows if one.device_s is not None]
    if late:
        lines.append(f"{told['by']}: the loop's clock says {_text(median(late))} more (median)")
        early = [one for one in late if one < -_EARLY_S]
        if early:
            faults.append(
                f"{len(early)} windows end before the device does, by {_text(-min(early))}"
            )
        if is_judged and median(late) > max(_LATE_S, _LATE * loop_s):
            faults.append(f"windows are {_text(median(late))} longer than the device's (median)")
    else:
        lines.append("no CUDA events: this framework's stream cannot be reached from outside")
    left = [one.left_s for one in windows if one.left_s is not None]
    if left:
        without = told["control"]["left_s"]
        lines.append(
            f"after sync() the device went on for {_text(median(left))} (median); "
            f"for {_text(without)} where nobody called it"
        )
        if is_judged and median(left) > max(_LATE_S, _LATE * loop_s):
            faults.append(f"sync() returns {_text(median(left))} before the device is idle")
    else:
        lines.append(f"whether the device was idle is not known: {told['driver']}")
        if is_judged:
            faults.append(f"the driver could not be asked: {told['driver']}")
    in_loop = sum(one.loop_s for one in windows) / sum(one.steps for one in windows)
    ratio = told["plain"]["seconds"] / told["plain"]["steps"] / in_loop
    lines.append(f"steps without the loop take {ratio:.3f} of its {_text(in_loop)}")
    if is_judged and abs(ratio - 1) > _APART:
        faults.append(f"steps without the loop take {ratio:.3f} of the time that it tells")
    return lines, faults


def _work(day: Day, cell: Mapping[str, Any], limit_s: float) -> tuple[list[Window], dict[str, Any]]:
    """Let a worker do a cell's job, marked; give its measured windows and the rest of the marks.

    A cell that was worked is not worked again.
    """
    marks = jobs.folder_of(day, cell, "windows") / "marks.json"
    if not marks.is_file() or (events := jobs.events_of(day, cell, "windows")) is None:
        marks.unlink(missing_ok=True)
        named = {"MARKED_ADAPTER": cell["adapter_module"], "MARKED_FILE": str(marks)}
        marking = {"adapter_module": "marked_adapter", "trial": "marked"}
        events = jobs.work(day, cell, "windows", limit_s, marking, **named)
    told = json.loads(marks.read_text(encoding="utf-8"))
    marked = told.pop("windows")
    windows = [
        Window(event["steps"], (event["end"] - event["start"]) / 1e9, **mark)
        for event, mark in zip(
            (one for one in events if one["event"] == "window"), marked, strict=True
        )
        if event["phase"] == "measure"
    ]
    return windows, told


def _text(seconds: float) -> str:
    size = abs(seconds)
    return f"{seconds * 1e3:.3g} ms" if size >= 1e-3 else f"{seconds * 1e6:.3g} µs"
