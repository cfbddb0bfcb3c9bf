"""Create and lock a run directory, claim a copied one, move its trials from state to state.

A trial's directory appears whole, with its job; it is complete when ``outcome.json`` is there; one
without it, or with a damaged one, counts as interrupted, and is set aside before anything is
counted or repeated.
"""

from __future__ import annotations

import re
import secrets
import shutil
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import locks
from harness.errors import DamagedFile, RunError
from harness.locks import Holder
from harness.store import half_written
from harness.store.files import explained
from harness.store.json_text import parse_line
from harness.store.layout import VERSION, RunPaths, TrialName, TrialPaths, up_to_date
from harness.store.outcome import Outcome, read_complete
from harness.store.paths.names import path_part, payload_name
from harness.store.typed import damage, read
from harness.worker.redaction.redact import redact_values

_NAMED = 3
"""So many damaged lines of the log are named."""


@contextmanager
def creating(
    root: Path, identity: Mapping[str, Any], *, numbered: bool = False
) -> Iterator[RunPaths]:
    """Make a run directory to fill, and leave nothing of one half filled.

    One that exists is refused, or the name gets a number: ``root-2``, ``root-3`` …
    """
    _refuse_colon(root)
    with explained(root):
        root = _made(root, numbered=numbered)
    paths = RunPaths(root)
    try:
        with explained(root):
            paths.files.make_folder(paths.cells)
        own = {"id": _new_id(root), "directory": root.stat().st_ino}
        paths.files.write_json(paths.run, {"version": VERSION, **own, **identity})
        yield paths
    except BaseException:  # a full disk, or Ctrl-C
        shutil.rmtree(root, ignore_errors=True)
        raise


def _made(root: Path, *, numbered: bool) -> Path:
    """Make a folder that nobody else made: of several processes each gets its own."""
    place, number = root, 1
    while True:
        try:
            place.mkdir(parents=True)
        except FileExistsError:
            if not numbered:
                raise RunError(
                    f"{root}: there is a run already. Go on with `bakeoff resume {root}`, "
                    f"or choose another --name."
                ) from None
            number += 1
            place = root.with_name(f"{root.name}-{number}")
        else:
            return place


def _refuse_colon(root: Path) -> None:
    """Refuse a path that cannot be a part of PYTHONPATH, by which workers find their code."""
    if ":" in str(root.absolute()):
        raise RunError(
            f"{root.absolute()}: the path of a run cannot hold a colon, which separates search "
            "paths. Start from another folder, or move the run."
        )


def open_run(root: Path) -> RunPaths:
    """Open a run directory; refuse what is none or was written by another version."""
    paths = RunPaths(root)
    if not paths.files.exists(paths.run):
        raise RunError(f"{root}: this is no run directory (it has no run.json).")
    up_to_date(root, paths.files.read_object(paths.run))
    return paths


def is_copy(paths: RunPaths) -> bool:
    """Whether this directory is a copy: what runs or waits under its id belongs to the original.

    A renamed directory keeps its inode; a copy has another one, on whatever file system.
    """
    return bool(paths.files.read_object(paths.run).get("directory") != paths.root.stat().st_ino)


def claim(paths: RunPaths) -> bool:
    """Give a copy an id of its own, so that it never touches what belongs to its original.

    Processes, scratch folders and jobs in a queue carry the id. Call it with the run locked.
    """
    if not is_copy(paths):
        return False
    raw = paths.files.read_object(paths.run)
    own = {"id": _new_id(paths.root), "directory": paths.root.stat().st_ino}
    paths.files.remove(paths.jobs)
    paths.files.write_json(paths.run, {**raw, **own})
    log(paths, "claimed", id=own["id"], copy_of=raw.get("id"))
    return True


def _new_id(root: Path) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]", "-", root.name)[:100].strip("._-")
    return f"{name or 'run'}-{secrets.token_hex(8)}"


def stored_plan(paths: RunPaths) -> dict[str, Any]:
    """Read the plan of a run; refuse one of another version."""
    return up_to_date(paths.root, paths.files.read_object(paths.plan))


@contextmanager
def locked(paths: RunPaths) -> Iterator[None]:
    """Lock the run directory against other bakeoff processes; a crash releases the lock."""
    _refuse_colon(paths.root)
    with paths.files.writing(paths.lock) as file, locks.held_by_name(file.fileno()) as is_ours:
        if not is_ours:
            who = locks.holder(file.fileno()) or "another bakeoff process"
            raise RunError(
                f"{paths.root}: {who} is working on this run. Wait for it, or end it, then try "
                "again."
            )
        yield


def holder(paths: RunPaths) -> Holder | None:
    """Say who works on a run, if anybody does."""
    try:
        with paths.files.reading(paths.lock) as file:
            return locks.holder(file.fileno())
    except FileNotFoundError:
        return None


def log(paths: RunPaths, what: str, **fields: Any) -> None:
    """Append one entry to the session's log."""
    entry = {"wall_ns": time.time_ns(), "what": what, **redact_values(fields)}
    paths.files.append_line(paths.log, entry)


@dataclass(frozen=True)
class LogEntry:
    """What is read again of an entry of the session's log."""

    what: str
    cell: str = ""
    trial: str = ""
    block: int = 0
    trials: tuple[tuple[str, str], ...] | int = ()
    """(cell key, trial) of those meant, or how many there are."""


@dataclass(frozen=True)
class Log:
    """The entries of the session's log, the earliest first."""

    entries: tuple[LogEntry, ...]
    damaged: tuple[str, ...]
    """What is wrong with the lines that hold none."""


def read_log(paths: RunPaths) -> Log:
    """Read the log; a damaged line costs that line, and one cut short by a crash is none."""
    damaged: list[str] = []
    return Log(tuple(_entries(paths, damaged)), tuple(damaged))


def damaged_lines(paths: RunPaths) -> tuple[str, ...]:
    """Say what is wrong with lines of the log, and keep nothing of the others."""
    damaged: list[str] = []
    deque(_entries(paths, damaged), maxlen=0)
    return tuple(damaged)


def _entries(paths: RunPaths, damaged: list[str]) -> Iterator[LogEntry]:
    """Give the log's entries; name the first lines that hold none, and were not cut by a crash."""
    try:
        for number, line in paths.files.lines(paths.log):
            try:
                yield read(LogEntry, parse_line(line))
            except ValueError as fault:
                if not line.startswith(b"{") or line.endswith(b"}\n"):
                    where = f":{number} is damaged: {fault}. It is left out."
                    more = ": further lines are damaged, and left out."
                    if len(damaged) <= _NAMED:
                        damaged.append(f"{paths.log}{where if len(damaged) < _NAMED else more}")
    except DamagedFile as problem:
        damaged.append(str(problem))


def make_trial(paths: RunPaths, cell_key: str, name: TrialName | str, job_text: str) -> TrialPaths:
    """Make a trial's directory with its job in it: both appear at once."""
    files, final = paths.files, paths.trial(cell_key, name)
    beside = TrialPaths(final.root.with_name(f".{name}.new"), paths.root)
    files.remove(beside.root)
    files.make_folder(beside.root)
    files.write(beside.job, job_text, settled=False)
    files.rename(beside.root, final.root)
    return final


def outcomes(paths: RunPaths) -> dict[str, dict[TrialName, Outcome]]:
    """Read the outcomes of all complete trials, by cell; a damaged trial is not complete."""
    found: dict[str, dict[TrialName, Outcome]] = {}
    for trial in trials(paths):
        name = TrialName.parse(trial.root.name)
        if name is not None:
            with suppress(DamagedFile):
                if paths.files.exists(trial.outcome):
                    of_cell = found.setdefault(trial.root.parent.name, {})
                    of_cell[name] = read_complete(trial)
    return found


def set_interrupted_aside(paths: RunPaths) -> list[Path]:
    """Move incomplete and damaged trials to the folder of interrupted ones.

    What a crash left half written is removed. Call it with the run locked.
    """
    half_written.remove(paths, [trial.root for trial in trials(paths)])
    return [
        set_aside(paths, trial.root) for trial in list(trials(paths)) if not _is_complete(trial)
    ]


def trials(paths: RunPaths) -> Iterator[TrialPaths]:
    """Find the folders of all trials, complete or not, of blocks or others."""
    for key in paths.files.folders(paths.cells):
        with suppress(DamagedFile):
            for name in paths.files.folders(paths.cells / key):
                yield paths.trial(key, name)


def _is_complete(trial: TrialPaths) -> bool:
    try:
        read_complete(trial)
    except DamagedFile:
        return False
    return True


def set_aside(paths: RunPaths, directory: Path) -> Path:
    """Move one trial to the folder of interrupted ones; give its new path."""
    cell = directory.parent.name
    target = paths.interrupted / f"{cell}.{directory.name}.{time.time_ns()}"
    paths.files.make_folder(target.parent)
    paths.files.rename(directory, target)
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
    raw = paths.files.read_object(paths.run)
    with damage(paths.run):
        stated = read(Identity, raw)
        path_part(stated.id, "run's id")
        payload_name(stated.payload)
    return stated
