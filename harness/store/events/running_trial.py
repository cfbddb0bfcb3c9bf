"""Find the trial that a run is busy with, and what its first rank does at the moment."""

from __future__ import annotations

from dataclasses import dataclass

from harness.store.events.rank_tail import first_events, last_events
from harness.store.files import read_json
from harness.store.layout import RunPaths, TrialPaths

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
    jobs = sorted(paths.cells.glob("*/*/job.json"), key=lambda one: one.stat().st_mtime_ns)
    trials = [TrialPaths(job.parent) for job in jobs]
    unfinished = [trial for trial in trials if not trial.outcome.is_file()]
    return next(reversed(unfinished or trials), None)


def label(paths: RunPaths, trial: TrialPaths) -> str:
    """Name a trial's cell as the run's plan does."""
    key = trial.root.parent.name
    labels = {cell["key"]: cell["label"] for cell in read_json(paths.plan)["cells"]}
    return str(labels.get(key, key))


def read_trial_progress(trial: TrialPaths) -> TrialProgress:
    """Read the end of what the first rank told."""
    phase = steps = rate = loss = None
    for event in last_events(trial.events(0), _TAIL):
        if event["event"] == "window":
            phase = phase or event["phase"]
            if steps is None:
                elapsed_s = (event["end"] - event["start"]) / 1e9
                steps = event["first"] + event["steps"]
                rate = event["steps"] / elapsed_s if elapsed_s > 0 else None
        elif event["event"] == "phase":
            phase = phase or event["name"]
        elif event["event"] == "values" and loss is None:
            loss = event["values"].get("loss")
        if None not in (phase, steps, loss):
            break
    return TrialProgress(phase=phase, steps=steps, steps_per_s=rate, loss=loss)


def units_per_s(trial: TrialPaths, progress: TrialProgress, unit: str) -> float | None:
    """Give the rate of a trial in units of work, over all ranks."""
    work = _units_per_step(trial, unit) if progress.steps_per_s is not None else None
    return None if work is None or progress.steps_per_s is None else work * progress.steps_per_s


def _units_per_step(trial: TrialPaths, unit: str) -> float | None:
    """Read from the first rank's first lines how much work a step of all ranks does."""
    ranks = 1
    for event in first_events(trial.events(0)):
        if event["event"] == "anchor":
            ranks = event["size"]
        elif event["event"] == "units":
            work: float | None = event["units"].get(unit)
            return None if work is None else work * ranks
    return None
