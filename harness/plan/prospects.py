"""Say what a plan's comparisons can tell, before they cost anything."""

from __future__ import annotations

from collections import Counter

from harness.plan.plan import Plan
from harness.stats.answers import FEWEST_BLOCKS
from harness.stats.power import OFTEN, smallest_difference
from harness.worker.network.workload import task

_SCATTER = (0.01, 0.03, 0.1)
"""How much trials scatter: a quiet machine, an ordinary one, one that others use."""


def prospects(plan: Plan) -> str | None:
    """Say how small a difference will be found, or that none can be; None of cells alone.

    Declared looks share the error, so that a plan that repeats until it knows promises nothing.
    """
    most = max(Counter(task(one.workload, one.factors) for one in plan.cells).values())
    blocks = plan.measure.looks[-1]
    if most < 2:
        return None
    if blocks < FEWEST_BLOCKS:
        return (
            f"What it can tell: rates, but never which cell is faster. That takes "
            f"{FEWEST_BLOCKS} blocks, and measure.trials is {blocks}."
        )
    if len(plan.measure.looks) > 1:
        return None
    found = (
        f"{smallest_difference(most - 1, blocks, scatter) * 100:.2g} % where they scatter by "
        f"{scatter * 100:.0f} %"
        for scatter in _SCATTER
    )
    return (
        f"What it can tell: {OFTEN * 10:.0f} times in 10, that a cell's trials differ from the "
        f"reference's by {', '.join(found)}."
    )
