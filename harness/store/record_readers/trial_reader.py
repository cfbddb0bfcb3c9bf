"""Read the complete trials of a run; those that are damaged are named."""

from __future__ import annotations

from dataclasses import dataclass

from harness.errors import DamagedFile
from harness.store.layout import RunPaths, TrialName, TrialPaths
from harness.store.outcome import read_complete
from harness.store.records import RunRecord, TrialRecord
from harness.store.run_directory.trial_folders import require_trials


@dataclass(frozen=True)
class Trials:
    """The complete trials of a run, in order of cell, block and attempt."""

    records: tuple[TrialRecord, ...]
    damaged: tuple[str, ...]
    """What is wrong with those that cannot be read."""


def read_trials(run: RunRecord) -> Trials:
    """Read the complete trials of a run; one that is damaged does not hide the others."""
    records: list[TrialRecord] = []
    damaged: list[str] = []
    files = run.paths.files
    try:
        require_trials(run.paths)
        keys = files.folders(run.paths.cells)
    except DamagedFile as problem:
        return Trials((), (str(problem),))
    for key in keys:
        try:
            names = [TrialName.parse(one) for one in files.folders(run.paths.cells / key)]
        except DamagedFile as problem:
            damaged.append(f"{problem} Its trials are left out.")
            continue
        for name in sorted(name for name in names if name is not None):
            try:
                records.append(_record(run, name, run.paths.trial(key, name)))
            except DamagedFile as problem:
                if _has_ended(run.paths, key, name):
                    damaged.append(
                        f"{problem} The trial is left out; "
                        f"`bakeoff resume {run.info.directory}` sets it aside and runs it again."
                    )
    return Trials(tuple(records), tuple(damaged))


def _has_ended(paths: RunPaths, key: str, name: TrialName) -> bool:
    """Tell whether a trial has an outcome, or cannot be looked at."""
    try:
        return paths.files.exists(paths.trial(key, name).outcome)
    except DamagedFile:
        return True


def read_trial(run: RunRecord, trial: TrialPaths) -> TrialRecord:
    """Read one complete trial."""
    name = TrialName.parse(trial.root.name)
    assert name is not None, f"{trial.root} is no trial"
    return _record(run, name, trial)


def _record(run: RunRecord, name: TrialName, trial: TrialPaths) -> TrialRecord:
    return TrialRecord(run.info.name, name, trial, read_complete(trial))
