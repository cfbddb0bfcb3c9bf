"""The gate: does every cell that will be timed compute what its workload says, in float64 too?"""

from __future__ import annotations

from tests.gpu.answer import Answer, Broken
from tests.gpu.day import Day
from tests.gpu.steps.cells import selection

LIMIT_S = 470.0
_PRECISIONS = ["fp32", "tf32", "bf16"]
_PASSES = ("equivalent", "named difference")


def prove(day: Day, framework: str) -> Answer:
    """Examine a framework's cells of the study; what was examined before costs nothing."""
    version = day.framework(framework)["version"]
    precisions = [one for one in _PRECISIONS if one != "tf32" or not day.is_dry]
    cells = selection(day, (framework,), {"matrix.precision": precisions})
    told = day.bakeoff("verify", *cells, "--json", limit_s=LIMIT_S)
    if not told.out:
        raise Broken(told.last)
    found = told.json()["cells"].values()
    words = {one["label"]: f"{one['label']}: {one['state']}, {one['detail']}" for one in found}
    return Answer(
        lines=(f"{framework} {version} on {day.device}", *words.values()),
        measured={"version": version, "cells": list(found)},
        faults=tuple(words[one["label"]] for one in found if one["state"] not in _PASSES),
    )
