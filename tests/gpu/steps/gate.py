"""The gate: does every cell that will be timed compute what its workload says, in float64 too?"""

from __future__ import annotations

from tests.gpu.answer import Answer, Broken
from tests.gpu.day import Day
from tests.gpu.steps.cells import selection

LIMIT_S = 470.0
_PRECISIONS = ("fp32", "tf32", "bf16")
_PASSES = ("equivalent", "named difference")


def prove(day: Day, framework: str) -> Answer:
    """Examine a framework's cells of the study; what was examined before costs nothing."""
    version = day.framework(framework)["version"]
    lines, cells, faults = [f"{framework} {version} on {day.device}"], [], []
    precisions = [one for one in _PRECISIONS if one != "tf32" or not day.is_dry]
    for precision in precisions:
        chosen = selection(day, (framework,), {"matrix.precision": precision})
        told = day.bakeoff("verify", *chosen, "--json", limit_s=LIMIT_S / len(precisions))
        if not told.out:
            raise Broken(told.last)
        for one in told.json()["cells"].values():
            words = f"{one['label']}, {precision}: {one['state']}, {one['detail']}"
            if words in lines:
                continue
            lines.append(words)
            cells.append({"precision": precision, **one})
            if one["state"] not in _PASSES:
                faults.append(words)
    return Answer(tuple(lines), {"version": version, "cells": cells}, tuple(faults))
