"""The studies `frameworks` and `transformers`, small, on every framework here: a page of each."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

from tests.gpu.answer import Answer, NotPossible, Unfinished
from tests.gpu.day import Day
from tests.gpu.steps.cells import selection

LIMIT_S = 470.0
STUDIES = ("frameworks", "transformers")
_NOT_PACKED = ("caches", "payload", "lock")
"""Of a run: what is large, or the same as in the checkout."""


def run(day: Day, study: str) -> Answer:
    """Run a study, or go on with it; keep its page and its files."""
    usable, reasons = day.frameworks()
    if not usable:
        raise NotPossible("; ".join(reasons))
    place = day.work / "runs" / study
    if (place / "run.json").is_file():
        words = ["resume", study]
    else:
        words = ["run", *selection(day, usable, study=study), "--name", study]
    try:
        done = day.bakeoff(*words, "--json", limit_s=LIMIT_S)
    except Unfinished as why:
        ended = len(trials(place))
        raise Unfinished(f"{why}: {ended} trials ended so far, the next call goes on") from None
    if page := _keep(day, study, place):
        shown = day.bakeoff("show", study, limit_s=60.0).out.splitlines()
    ends = Counter(one["outcome"] for one in trials(place))
    faults = [f"{number} trials {end}" for end, number in ends.items() if end != "ok"]
    is_stand_in = any(one["origin"] == "stand-in" for one in trials(place))
    if not page or (done.code and not faults and not is_stand_in):
        faults.append(f"exit code {done.code}: {done.last}")
    return Answer(
        lines=(
            f"{ends['ok']} of {sum(ends.values())} trials ok"
            + (", beside a stand-in for a GPU: no measurements" if is_stand_in else ""),
            *(f"without {reason}" for reason in reasons),
            *(shown if page else ()),
        ),
        measured=json.loads(done.out) if done.out else {},
        faults=tuple(faults),
    )


def trials(place: Path) -> list[dict[str, Any]]:
    """Read how each trial of a run ended."""
    found = sorted((place / "cells").glob("*/trial-*/outcome.json"))
    return [json.loads(path.read_text(encoding="utf-8")) for path in found]


def _keep(day: Day, study: str, place: Path) -> bool:
    """Bring the page and the packed run into the top folder; False where there is no page."""
    page = place / "report.html"
    if not page.is_file():
        return False
    shutil.copyfile(page, day.out / f"{study}.html")
    with tarfile.open(day.out / f"{study}.run.tar.gz", "w:gz") as packed:
        packed.add(place, study, filter=_packed)
    return True


def _packed(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = Path(member.name).parts
    is_left_out = len(parts) > 1 and parts[1] in _NOT_PACKED
    return None if is_left_out or member.name.endswith(".parquet") else member
