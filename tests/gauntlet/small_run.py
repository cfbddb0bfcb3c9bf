"""A study of some milliseconds a trial, and the bookkeeping of what a run of it has finished."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.gauntlet.command import TRACEBACK
from tests.gauntlet.part import Part

NAME = "small"
BLOCKS = 3
_STUDY = """title = "A small run"
[matrix]
workload = "tinycnn"
framework = "null"
strategy = "none"
batch = {batches}
[measure]
trials = {blocks}
reruns = 0
warmup = "2 steps"
until = "10 ms"
reference = {{ batch = 1 }}
tolerate = ["contended", "throttled", "stalled"]
{turns}
"""
_TURNS = 'turns = true\nturn = "2 ms"'
_PLATFORM = f"""title = "The machine of the tests"
as_found = true
nodes = 1
[binding]
oversubscribe = true
[frameworks.null]
interpreter = "{sys.executable}"
"""
RUN = ("run", "study.toml", "--platform", "platform.toml", "--name", NAME)
RESUME = ("resume", f"runs/{NAME}")
REPORT = ("report", f"runs/{NAME}")


def write(folder: Path, *, cells: int = 2, blocks: int = BLOCKS, turns: bool = False) -> Path:
    """Write the study and its platform; give where its run will lie."""
    folder.mkdir(parents=True, exist_ok=True)
    study = _STUDY.format(
        batches=list(range(1, cells + 1)), blocks=blocks, turns=_TURNS if turns else "turns = false"
    )
    (folder / "study.toml").write_text(study)
    (folder / "platform.toml").write_text(_PLATFORM)
    return folder / "runs" / NAME


def finished(run: Path) -> dict[str, str]:
    """Give a digest of each finished trial: its files, but for tables that can be made anew."""
    found = {}
    for outcome in sorted(run.glob("cells/*/*/outcome.json")):
        digest = hashlib.sha256()
        for file in sorted(outcome.parent.iterdir()):
            if file.suffix != ".parquet" and not file.name.startswith("."):
                digest.update(file.name.encode() + b"\0" + file.read_bytes())
        found[str(outcome.parent.relative_to(run))] = digest.hexdigest()
    return found


def outcomes(run: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Give each finished trial's outcome by its cell and name."""
    return {
        (one.parent.parent.name, one.parent.name): json.loads(one.read_text())
        for one in sorted(run.glob("cells/*/*/outcome.json"))
    }


def contents(run: Path) -> frozenset[str]:
    """Give what a run holds, without what differs from one to the next: times, and numbers.

    Every file's path; the digest of code and study; how each block's last trial ended, of which
    alone the files count; and the ranking without its rates.
    """
    found = set[str]()
    if not (run / "run.json").is_file():
        return frozenset()
    for file in run.rglob("*"):
        path = file.relative_to(run)
        if path.parts[0] == "payload" or path.name == "study.toml":
            digest = hashlib.sha256(file.read_bytes() if file.is_file() else b"").hexdigest()
            found.add(f"{path} {digest[:12]}")
        elif path.parts[0] != "cells" and not path.name.startswith("."):
            found.add(str(path))
    for outcome in run.glob("cells/*/*/outcome.json"):
        how = json.loads(outcome.read_text())["outcome"]
        block = outcome.parent.name.partition(".")[0]
        if how == "ok":
            place = f"cells/{outcome.parent.parent.name}/{block}"
            found.add(f"{place} {how}")
            found |= {f"{place}/{one.name}" for one in outcome.parent.iterdir()}
    if (results := run / "results.json").is_file():
        for row in json.loads(results.read_text())["ranking"]:
            told = [row[key] for key in ("place", "workload", "cell", "key", "gate")]
            found.add(json.dumps([*told, row["rate"]["n"], row["rate"]["unit"]]))
    return frozenset(found)


def age(run: Path) -> None:
    """Let what is half written be of two hours ago: the page's may be another command's till then.

    The next session removes it.
    """
    for one in run.rglob(".*.new"):
        os.utime(one, (time.time() - 7200,) * 2)


def compare(part: Part, before: dict[str, str], after: dict[str, str], **where: Any) -> None:
    """Record what was finished and is not as it was."""
    for trial, digest in before.items():
        if trial not in after:
            part.found("lost", trial=trial, **where)
        elif after[trial] != digest:
            part.found("changed", trial=trial, **where)


def check_whole(part: Part, run: Path, *, trials: int, **where: Any) -> None:
    """Record what a run that was gone on with to its end lacks, or has twice."""
    ended = outcomes(run)
    well = Counter(
        (cell, one["trial"].partition(".")[0])
        for (cell, _), one in ended.items()
        if one["outcome"] == "ok"
    )
    # What is made again among turns is measured beside a further trial of what it is compared with.
    by_turns = {
        cell for (cell, _), one in ended.items() if (one.get("turns") or {}).get("together")
    }
    for (cell, block), times in well.items():
        if times > 1 and cell not in by_turns:
            part.found("doubled", trial=f"{cell}/{block}", **where)
    lines = (run / "log.jsonl").read_text(errors="replace").splitlines()
    log = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
    named = Counter((one["cell"], one["trial"]) for one in log if one["what"] == "trial")
    for name, times in named.items():
        if times > 1:
            part.found("logged twice", trial="/".join(name), **where)
    if len(well) < trials:
        part.found("incomplete", ok=len(well), **where)
    if well and not (run / "report.html").is_file():
        part.found("no page", **where)
    debris = [str(one.relative_to(run)) for one in run.rglob(".*")]
    if debris:
        part.found("debris", files=debris[:5], **where)
    agent = run / "agent.err"
    if agent.is_file() and TRACEBACK in (text := agent.read_text(errors="replace")):
        part.found("traceback of the agent", text=text[-1500:], **where)
