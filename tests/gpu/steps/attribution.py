"""Divide steps by what ran on the device, and hold that to what a division has to be.

The job is that of a run's ``attribution`` folder. A cell that was divided is not divided again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from harness.worker.attribution.marks import BACKWARD, FORWARD, GAPS, OTHER
from harness.worker.network.layers import Conv, Dense
from harness.worker.network.shapes import sites
from tests.gpu.answer import Answer, Broken, Unfinished
from tests.gpu.day import Day
from tests.gpu.steps import jobs
from tests.gpu.steps.windows import WORKLOADS
from workloads import resnet50, tinycnn

LIMIT_S = 440.0
"""Of a step's eight minutes, all cells together."""
_KIND = "attribution"
_MOST_UNMARKED = 0.05
"""Of a step; what carries no mark explains nothing."""
_SHOWN = 3
_NETWORKS = {"tinycnn": tinycnn.WORKLOAD.network, "resnet50": resnet50.WORKLOAD.network}


def divide(day: Day, framework: str) -> Answer:
    """Divide the step of each cell, one after the other, as far as the time goes."""
    version = day.framework(framework)["version"]
    changed = {} if day.is_dry else {"matrix.workload": WORKLOADS}
    lines, measured, faults = [f"{framework} {version} on {day.device}"], {}, []
    end = time.monotonic() + LIMIT_S
    for cell in jobs.cells(day, framework, changed):
        label = cell["label"]
        try:
            told = _told(day, cell, end - time.monotonic())
        except Broken as why:
            faults.append(f"{label}: {why}")
            continue
        except Unfinished as why:
            done = f"{len(measured)} cells divided so far, the next call goes on"
            raise Unfinished(f"{label}: {why}: {done}") from None
        words, wrong = judge(told, cell["workload"])
        lines += [f"{label}: {word}" for word in words]
        faults += [f"{label}: {word}" for word in wrong]
        measured[label] = _figures(told)
    return Answer(tuple(lines), measured, tuple(faults))


def judge(told: Mapping[str, Any], workload: str) -> tuple[list[str], list[str]]:
    """Say where a step's time went, and what of that must not be."""
    parts: Sequence[Mapping[str, Any]] = told["parts"]
    shares = _shares(told)
    slowed = median(told["step_s"]) / median(told["untraced_s"]) - 1
    lines = [f"{len(told['step_s'])} steps by {told['traced_by']}, {slowed:+.0%} with the trace"]
    for site, phase in sorted(shares, key=lambda key: -shares[key])[:_SHOWN]:
        lines.append(f"{f'{site}, ' if site else ''}{phase} {shares[site, phase]:.1%}")
    lines += [
        f"{phase} in all {sum(share for key, share in shares.items() if key[1] == phase):.1%}"
        for phase in (FORWARD, BACKWARD, GAPS, OTHER)
    ]
    lines += [
        f"of its gaps {one['share']:.0%} {one['name']}"
        for part in parts
        if part["phase"] == GAPS
        for one in part["operations"]
    ]
    lines += [
        f"without a mark: {one['share']:.0%} {one['name']}"
        for part in parts
        if part["phase"] == OTHER
        for one in part["operations"][:_SHOWN]
    ]
    faults = []
    if shares.get(("", OTHER), 0.0) > _MOST_UNMARKED:
        faults.append(f"{shares['', OTHER]:.1%} of its step carries no layer's mark")
    if without := [path for path in _heavy(workload) if not shares.get((path, BACKWARD))]:
        faults.append(f"no backward pass of {', '.join(without)}")
    if not any(phase == FORWARD for _, phase in shares):
        faults.append("no layer has a forward pass")
    return lines, faults


def _shares(told: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    return {(one["site"], one["phase"]): median(one["shares"]) for one in told["parts"]}


def _figures(told: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what a summary has room for; the folder holds the rest."""
    shares = [[*key, round(share, 6)] for key, share in _shares(told).items()]
    return {**{name: one for name, one in told.items() if name != "parts"}, "shares": shares}


def _told(day: Day, cell: Mapping[str, Any], limit_s: float) -> dict[str, Any]:
    """Give what a cell's job said: now, or before."""
    events = jobs.events_of(day, cell, _KIND)
    if events is None:
        changed = {"purpose": "attribute", "trial": _KIND}
        events = jobs.work(day, cell, _KIND, limit_s, changed)
    head = next(one for one in events if one["event"] == _KIND)
    told = {name: head[name] for name in ("traced_by", "step_s", "untraced_s")}
    return {**told, "parts": [one for one in events if one["event"] == "part"]}


def _heavy(workload: str) -> list[str]:
    return [one.path for one in sites(_NETWORKS[workload]) if isinstance(one.layer, Conv | Dense)]
