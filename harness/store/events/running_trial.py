"""Find the trial that a run is busy with, and what its first rank does at the moment."""

from __future__ import annotations

from dataclasses import dataclass

from harness.store.events.rank_tail import first_events, last_events
from harness.store.layout import RunPaths, TrialPaths
from harness.store.run_directory import trial_folders
from harness.store.typed import damage, read
from harness.worker.redaction.redact import redact_text

_TAIL = 1 << 13


@dataclass(frozen=True)
class TrialProgress:
    """What the first rank of a running trial last told; None is what it did not tell lately."""

    phase: str | None
    steps: int | None
    steps_per_s: float | None
    loss: float | None


def latest_trial(paths: RunPaths) -> TrialPaths | None:
    """Find the trial that was begun last and has not ended; else the last that ended."""
    files = paths.files
    begun = {trial: files.changed_ns(trial.job) for trial in trial_folders.trials(paths)}
    trials = sorted((one for one in begun if begun[one]), key=lambda one: begun[one])
    unfinished = [trial for trial in trials if not files.exists(trial.outcome)]
    return next(reversed(unfinished or trials), None)


def label(paths: RunPaths, trial: TrialPaths) -> str:
    """Name a trial's cell as the run's plan does."""
    key = trial.root.parent.name
    with damage(paths.plan):
        plan = read(_Labels, paths.files.read_object(paths.plan))
    return redact_text(next((cell.label for cell in plan.cells if cell.key == key), key))


@dataclass(frozen=True)
class _Label:
    key: str
    label: str


@dataclass(frozen=True)
class _Labels:
    """What is read here of ``plan.json``."""

    cells: tuple[_Label, ...]


def read_trial_progress(trial: TrialPaths) -> TrialProgress:
    """Read the end of what the first rank told."""
    phase = steps = rate = loss = None
    for event in last_events(trial, 0, _TAIL):
        if event["event"] == "window":
            phase = phase or event["phase"]
            if steps is None:
                elapsed_s = (event["end"] - event["start"]) / 1e9
                steps = event["first"] + event["steps"]
                rate = event["steps"] / elapsed_s if elapsed_s > 0 else None
        elif event["event"] == "phase":
            phase = phase or event["name"]
        elif event["event"] == "values" and loss is None:
            told = event["values"].get("loss")
            loss = told if isinstance(told, int | float) else None
        if None not in (phase, steps, loss):
            break
    phase = phase and redact_text(phase)
    return TrialProgress(phase=phase, steps=steps, steps_per_s=rate, loss=loss)


def units_per_s(trial: TrialPaths, progress: TrialProgress, unit: str) -> float | None:
    """Give the rate of a trial in units of work, over all ranks."""
    work = _units_per_step(trial, unit) if progress.steps_per_s is not None else None
    return None if work is None or progress.steps_per_s is None else work * progress.steps_per_s


def _units_per_step(trial: TrialPaths, unit: str) -> float | None:
    """Read from the first rank's first lines how much work a step of all ranks does."""
    ranks = 1
    for event in first_events(trial, 0):
        if event["event"] == "anchor":
            ranks = event["size"]
        elif event["event"] == "units":
            work: float | None = event["units"].get(unit)
            return None if work is None else work * ranks
    return None
