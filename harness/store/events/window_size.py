"""Find how many steps a cell's windows hold, so that those of its later trials hold as many."""

from __future__ import annotations

from harness.store.events.rank_tail import last_events
from harness.store.layout import RunPaths, TrialName

_TAIL = 1 << 16


def steps_per_window(paths: RunPaths, cell_key: str, before: TrialName) -> int | None:
    """Give the size of the first trial that has windows; None where no earlier trial has."""
    for block in range(before.block + 1):
        trial = paths.trial(cell_key, TrialName(block))
        if trial.files.exists(trial.outcome):
            windows = [
                int(event["steps"])
                for event in last_events(trial, 0, _TAIL)
                if event["event"] == "window" and event["phase"] == "measure"
            ]
            if windows:
                return max(windows)  # the last one may have been cut short
    return None
