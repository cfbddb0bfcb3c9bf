"""Carry steps out and keep what each found: one file a step, written aside and renamed."""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.store.files import write_json
from tests.gpu.answer import Answer, Broken, NotPossible, Unfinished
from tests.gpu.day import Day
from tests.gpu.table import Step

VERSION = 2  # 2: what earlier tries took
OK, FAILED, UNFINISHED, NOT_POSSIBLE = "ok", "failed", "unfinished", "not possible"


def carry_out(day: Day, step: Step) -> dict[str, Any]:
    """Do a step, unless it was done before; give its result."""
    kept = read(day, step)
    if kept is not None and kept["state"] == OK:
        _say(f"{step.name}: ok before, not repeated")
        return kept
    if day.left_s <= 0:
        _say(f"{step.name}: not begun, as the day is over")
        return {"state": UNFINISHED}
    _say(f"{step.name}: {step.shows} …")
    start = time.monotonic()
    state, reason, answer = _ended(day, step)
    result = {
        "version": VERSION,
        "step": step.name,
        "state": state,
        "reason": reason,
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - start, 1),
        "earlier_s": 0.0 if kept is None else kept["earlier_s"] + kept["seconds"],
        "lines": list(answer.lines),
        "faults": list(answer.faults),
        "measured": dict(answer.measured),
    }
    write_json(_path(day, step), result)
    _say(f"{step.name}: {state}{f': {reason}' if reason else ''} ({result['seconds']:.0f} s)")
    return result


def spent_s(day: Day, steps: Sequence[Step]) -> float:
    """Add up what a day's steps took so far, all tries of each."""
    found = (read(day, step) for step in steps)
    return sum(one["earlier_s"] + one["seconds"] for one in found if one is not None)


def other_day(day: Day) -> str | None:
    """Name whose day a folder holds, if it is another one; else make it this one's."""
    path = day.work / "day.json"
    if not path.is_file():
        write_json(path, day.identity)
        return None
    held = json.loads(path.read_text(encoding="utf-8"))
    if held == day.identity:
        return None
    return f"{held['python']}{', a rehearsal' if held['dry_run'] else ''}"


def read(day: Day, step: Step) -> dict[str, Any] | None:
    """Give a step's result; None where it has none that this version can read."""
    try:
        result = json.loads(_path(day, step).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return result if result.get("version") == VERSION else None


def _ended(day: Day, step: Step) -> tuple[str, str, Answer]:
    """Do a step; whatever goes wrong in it is its result, and the others go on."""
    nothing = Answer(())
    try:
        answer = step.run(day)
    except NotPossible as why:
        return NOT_POSSIBLE, str(why), nothing
    except Unfinished as why:
        return UNFINISHED, str(why), nothing
    except Broken as why:
        return FAILED, str(why), nothing
    except Exception as error:  # noqa: BLE001 a step that nobody has run on a GPU may fail anyhow
        day.log(traceback.format_exc())
        return FAILED, f"{type(error).__name__}: {error} (log.txt has where)", nothing
    if answer.faults:
        return FAILED, "; ".join(answer.faults), answer
    return OK, "", answer


def _path(day: Day, step: Step) -> Path:
    return day.work / "steps" / f"{step.name}.json"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
