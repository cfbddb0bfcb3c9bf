"""Create, open and lock a run directory."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from harness import locks
from harness.errors import RunError
from harness.locks import Holder
from harness.store.files import explained
from harness.store.layout import RunPaths
from harness.store.paths import handles
from harness.store.paths.run_format import VERSION, up_to_date
from harness.store.run_directory.identity import new_identity


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
    with handles.staying_the_same(root):
        is_which = handles.made(root)
        try:
            with explained(root):
                paths.files.make_folder(paths.cells)
            paths.files.write_json(
                paths.run, {"version": VERSION, **new_identity(root), **identity}
            )
            yield paths
        except BaseException:  # a full disk, or Ctrl-C
            with suppress(OSError):  # it was renamed, and may be gone
                if handles.made(root) == is_which:
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


def stored_plan(paths: RunPaths) -> dict[str, Any]:
    """Read the plan of a run; refuse one of another version."""
    return up_to_date(paths.root, paths.files.read_object(paths.plan))


@contextmanager
def locked(paths: RunPaths) -> Iterator[None]:
    """Lock the run directory against other bakeoff processes; a crash releases the lock.

    While it is locked, no other directory at its path is taken for it.
    """
    _refuse_colon(paths.root)
    with ExitStack() as held:
        with handles.changing(paths.lock):
            held.enter_context(handles.staying_the_same(paths.root))
            file = held.enter_context(paths.files.writing(paths.lock))
            is_ours = held.enter_context(locks.held_by_name(file.fileno()))
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
