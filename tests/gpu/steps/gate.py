"""The gate: does every cell that will be timed compute what its workload says, in float64 too?"""

from __future__ import annotations

from tests.gpu.answer import Answer, Broken
from tests.gpu.day import Day
from tests.gpu.steps.cells import selection

LIMIT_S = 540.0
_PASSES = ("equivalent", "named difference")


def prove(day: Day, framework: str) -> Answer:
    """Examine a framework's cells of the study; what was examined before costs nothing."""
    version = day.framework(framework)["version"]
    told = day.bakeoff("verify", *selection(day, (framework,)), "--json", limit_s=LIMIT_S)
    if not told.out:
        raise Broken(told.last)
    cells = told.json()["cells"].values()
    words = {one["label"]: f"{one['label']}: {one['state']}, {one['detail']}" for one in cells}
    return Answer(
        lines=(f"{framework} {version} on {day.device}", *words.values()),
        measured={"version": version, "cells": list(cells)},
        faults=tuple(words[one["label"]] for one in cells if one["state"] not in _PASSES),
    )
