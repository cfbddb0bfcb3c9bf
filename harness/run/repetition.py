"""This file asks between blocks, of what a run has stored, whether to go on."""

from __future__ import annotations

from harness.spec.plan import Plan
from harness.stats.repeat import Decision
from harness.store.layout import RunPaths

_ORIGINS = ("measured", "simulated", "stand-in", "replayed")


def enough(paths: RunPaths, plan: Plan, done: int) -> Decision | None:
    """Decide after ``done`` blocks; None where there is nothing to decide.

    Between looks only the budget can end a study, so that the trials are read at looks alone.
    """
    measure = plan.measure
    is_look = done in measure.looks
    if measure.until_interval is None or done < measure.trials:
        return None
    if not is_look and measure.budget_s is None:
        return None
    from harness.store import repetition
    from harness.store.analyse import estimate_cells
    from harness.store.dataset import Dataset

    dataset = Dataset([paths.root], origins=_ORIGINS)
    (run,) = dataset.runs
    cells = estimate_cells(dataset)[run.info.name]
    return repetition.judge(run, dataset.trials, cells, done)
