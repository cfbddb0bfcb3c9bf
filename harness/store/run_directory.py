"""Create and lock a run directory, claim a copied one, move its trials from state to state.

A trial's directory appears whole, with its job; it is complete when ``outcome.json`` is there; one
without it, or with a damaged one, counts as interrupted, and is set aside before anything is
counted or repeated.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import locks
from harness.errors import DamagedFile, RunError
from harness.store.files import (
    append_line,
    explained,
    read_json,
    write_json,
)
from harness.store.layout import VERSION, RunPaths, TrialName, TrialPaths, refuse_other_format
from harness.store.names import path_part, payload_name
from harness.store.outcome import Outcome, read_outcome


@contextmanager
def creating(root: Path, identity: Mapping[str, Any]) -> Iterator[RunPaths]:
    """Make a run directory to fill; refuse one that exists, leave nothing of one half filled."""
    paths = RunPaths(root)
    with explained(root):
        try:
            root.mkdir(parents=True)
        except FileExistsError:
            raise RunError(
                f"{root}: there is a run already. Go on with `bakeoff resume {root}`, "
                f"or choose another --name."
            ) from None
    try:
        with explained(root):
            paths.cells.mkdir()
        own = {"id": _new_id(root), "directory": root.stat().st_ino}
        write_json(paths.run, {"version": VERSION, **own, **identity})
        yield paths
    except BaseException:  # a full disk, or Ctrl-C
        shutil.rmtree(root, ignore_errors=True)
        raise


def open_run(root: Path) -> RunPaths:
    """Open a run directory; refuse what is none or was written by another version."""
    paths = RunPaths(root)
    if not paths.run.is_file():
        raise RunError(f"{root}: this is no run directory (it has no run.json).")
    refuse_other_format(root, read_json(paths.run)["version"])
    return paths


def is_copy(paths: RunPaths) -> bool:
    """Whether this directory is a copy: what runs or waits under its id belongs to the original.

    A renamed directory keeps its inode; a copy has another one, on whatever file system.
    """
    return bool(read_json(paths.run).get("directory") != paths.root.stat().st_ino)


def claim(paths: RunPaths) -> None:
    """Give a copy an id of its own, so that it never touches what belongs to its original.

    Processes, scratch folders and jobs in a queue carry the id. Call it with the run locked.
    """
    if not is_copy(paths):
        return
    raw = read_json(paths.run)
    own = {"id": _new_id(paths.root), "directory": paths.root.stat().st_ino}
    with explained(paths.jobs):
        paths.jobs.unlink(missing_ok=True)
    write_json(paths.run, {**raw, **own})
    log(paths, "claimed", id=own["id"], copy_of=raw["id"])


def _new_id(root: Path) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]", "-", root.name)[:100].strip("._-")
    return f"{name or 'run'}-{secrets.token_hex(8)}"


def stored_plan(paths: RunPaths) -> dict[str, Any]:
    """Read the plan of a run; refuse one of another version."""
    plan: dict[str, Any] = read_json(paths.plan)
    refuse_other_format(paths.root, plan["version"])
    return plan


@contextmanager
def locked(paths: RunPaths) -> Iterator[None]:
    """Lock the run directory against other bakeoff processes; a crash releases the lock."""
    with ExitStack() as stack:
        with explained(paths.lock):
            is_ours = stack.enter_context(locks.held_by_name(paths.lock))
        if not is_ours:
            who = locks.holder(paths.lock) or "another bakeoff process"
            raise RunError(
                f"{paths.root}: {who} is working on this run. Wait for it, or end it, then try "
                "again."
            )
        yield


def log(paths: RunPaths, what: str, **fields: Any) -> None:
    """Append one entry to the session's log."""
    append_line(paths.log, {"wall_ns": time.time_ns(), "what": what, **fields})


def logged(paths: RunPaths) -> Iterator[dict[str, Any]]:
    """Read the log's entries, the earliest first."""
    if not paths.log.is_file():
        return
    for text in paths.log.read_text(encoding="utf-8").splitlines():
        with suppress(ValueError):  # a last line that a crash cut short, or is being written
            yield json.loads(text)


def make_trial(paths: RunPaths, cell_key: str, name: TrialName | str, job_text: str) -> TrialPaths:
    """Make a trial's directory with its job in it: both appear at once."""
    final = paths.cell(cell_key) / str(name)
    beside = final.with_name(f".{name}.new")
    with explained(final):
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        TrialPaths(beside).job.write_text(job_text, encoding="utf-8")
        beside.rename(final)
    return TrialPaths(final)


def outcomes(paths: RunPaths) -> dict[str, dict[TrialName, Outcome]]:
    """Read the outcomes of all complete trials, by cell."""
    found: dict[str, dict[TrialName, Outcome]] = {}
    for cell in sorted(paths.cells.iterdir()):
        for directory in cell.iterdir():
            name, trial = TrialName.parse(directory.name), TrialPaths(directory)
            if name is not None and trial.outcome.is_file():
                found.setdefault(cell.name, {})[name] = read_outcome(trial)
    return found


def set_interrupted_aside(paths: RunPaths) -> list[Path]:
    """Move incomplete and damaged trials to the folder of interrupted ones."""
    moved = []
    for cell in sorted(paths.cells.iterdir()):
        moved += [
            set_aside(paths, directory)
            for directory in sorted(cell.iterdir())
            if directory.is_dir() and not _is_complete(TrialPaths(directory))
        ]
    return moved


def _is_complete(trial: TrialPaths) -> bool:
    if not trial.outcome.is_file():
        return False
    try:
        read_outcome(trial)
    except DamagedFile:
        return False
    return True


def set_aside(paths: RunPaths, directory: Path) -> Path:
    """Move one trial to the folder of interrupted ones; give its new path."""
    cell = directory.parent.name
    target = paths.interrupted / f"{cell}.{directory.name}.{time.time_ns()}"
    with explained(target):
        target.parent.mkdir(exist_ok=True)
        directory.rename(target)
    return target


@dataclass(frozen=True)
class Identity:
    """What run.json says."""

    id: str
    payload: str
    """The payload folder that trials run from now."""
    first: Mapping[str, str]
    accepted: Mapping[str, str]


def identity(paths: RunPaths) -> Identity:
    """Read what run.json says."""
    raw = read_json(paths.run)
    payload = payload_name(raw["payload"])
    return Identity(path_part(raw["id"], "run's id"), payload, raw["first"], raw["accepted"])
