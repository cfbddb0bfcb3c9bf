"""Name the cells that the pilot block made references: groups are made around them."""

from __future__ import annotations

from collections.abc import Mapping

from harness.plan.plan import Plan
from harness.plan.turn_rules import task_of
from harness.store.layout import RunPaths

_ORIGINS = ("measured", "stand-in")


def references(plan: Plan, paths: RunPaths) -> Mapping[str, str]:
    """Give for each task the cell that its others are compared with, as far as it is known."""
    # Statistics take half a second to import, and most sessions do not need them before their end.
    from harness.analysis.analyse import estimate_cells
    from harness.analysis.blocks.compare_cells import pilot_rate
    from harness.stats.compare import pilot_leader
    from harness.store.dataset import Dataset

    dataset = Dataset([paths.root], origins=_ORIGINS)
    (run,) = dataset.runs
    rates: dict[str, dict[str, float | None]] = {}
    for result in estimate_cells(dataset)[run.info.name]:
        if result.key in plan.by_key and result.is_comparable:
            task = task_of(plan.cell(result.key))
            rates.setdefault(task, {})[result.key] = pilot_rate(run, result)
    found = {task: pilot_leader(some) for task, some in rates.items()}
    leaders = {task: key for task, key in found.items() if key is not None}
    return {**leaders, **plan.reference}
