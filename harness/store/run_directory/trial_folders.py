"""Make the folders of trials, find them, and move them from state to state.

A trial's directory appears whole, with its job; it is complete when ``outcome.json`` is there; one
without it, or with a damaged one, counts as interrupted, and is set aside before anything is
counted or repeated.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from harness.errors import DamagedFile
from harness.store import half_written
from harness.store.layout import RunPaths, TrialName, TrialPaths
from harness.store.outcome import Outcome, read_complete


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


def has_ok(paths: RunPaths, cell_key: str) -> bool:
    """Tell whether any trial of a cell ended well."""
    return any(one.is_ok for one in outcomes(paths).get(cell_key, {}).values())


def set_interrupted_aside(paths: RunPaths) -> list[Path]:
    """Move incomplete and damaged trials to the folder of interrupted ones.

    What a crash left half written is removed. Call it with the run locked.
    """
    half_written.remove(paths, [trial.root for trial in trials(paths)])
    return [
        set_aside(paths, trial.root) for trial in list(trials(paths)) if not _is_complete(trial)
    ]


def require_trials(paths: RunPaths) -> None:
    """Refuse a run that lacks the folder of its trials, which is there from the beginning."""
    if not paths.files.exists(paths.cells):
        raise DamagedFile(
            f"{paths.cells}: this folder is missing, and with it all trials of the run. Put it "
            "back; with an empty one in its place, all of them are due."
        )


def trials(paths: RunPaths) -> Iterator[TrialPaths]:
    """Find the folders of all trials, complete or not, of blocks or others."""
    require_trials(paths)
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
