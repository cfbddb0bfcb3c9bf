"""Find run directories in a folder, and in the folders that some verbs keep theirs in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from harness.errors import DamagedFile, RunError
from harness.store.contained import MOST_JSON
from harness.store.layout import RunPaths

RUNS = Path("runs")


def is_run(folder: Path) -> bool:
    """Tell whether a folder is a run directory, or may be: reading one says what is wrong."""
    paths = RunPaths(folder)
    try:
        return paths.files.exists(paths.run)
    except RunError:  # nobody else may look into it
        return True


def runs_in(folder: Path) -> Iterator[Path]:
    """Give the runs in a folder by name, and where one of its folders is no run, those in that.

    ``screen``, ``layers``, ``platforms calibrate`` and ``doctor`` keep theirs in a folder of their
    own.
    """
    for place in _folders(folder):
        if is_run(place):
            yield place
        elif not place.is_symlink():
            yield from runs_directly_in(place)


def runs_directly_in(folder: Path) -> Iterator[Path]:
    """Give the runs in a folder by name."""
    return filter(is_run, _folders(folder))


def newest_first(runs: Iterable[Path]) -> list[Path]:
    """Order runs by when they were begun; those that cannot be looked into are left out."""
    begun = {}
    for place in runs:
        if not place.is_symlink():
            paths = RunPaths(place)
            with suppress(RunError, FileNotFoundError):
                begun[place] = _begun_ns(paths)
    return sorted(begun, key=begun.__getitem__, reverse=True)


def _begun_ns(paths: RunPaths) -> int:
    """Take the run's own word: a copy's file is younger. Of a damaged one take the file's time."""
    written = paths.files.checked(paths.run, MOST_JSON).lstat().st_mtime_ns
    with suppress(DamagedFile):
        begun = paths.files.read_object(paths.run).get("started_wall_ns")
        if isinstance(begun, int):
            return begun
    return written


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(place for place in folder.iterdir() if place.is_dir())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
