"""Compare the losses that two cells end with, beside by how much other seeds alone change them.

The cells that differ from one in nothing but their seed are one group with it. Groups agree where
the difference between their means, over the seeds of both, is no larger than the range of either
over its own; one of them has several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from harness.analysis import numbers
from harness.study.matrix import selectable
from harness.verdicts.results import CellResult, LastLoss


@dataclass(frozen=True)
class Agreement:
    """By how much the losses of two groups of cells differ, and what seeds alone change."""

    words: str
    value: float | None = None
    """The difference of their means; None where it is not known."""
    n: int = 0
    """Trials on either side, the fewer."""


def compare(cells: Sequence[CellResult], of: CellResult, over: CellResult) -> Agreement:
    """Compare the losses of two cells and of their like with other seeds."""
    groups = [_by_seed(cells, one) for one in (of, over)]
    common = groups[0].keys() & groups[1].keys() or {*groups[0], *groups[1]}
    losses = [
        [loss for seed, some in group.items() if seed in common for loss in some]
        for group in groups
    ]
    if not all(losses):
        return Agreement("not measured: a trial said no loss")
    steps = {loss.step for some in losses for loss in some}
    if len(steps) > 1:
        return Agreement(
            f"not measured: trials ended after {min(steps) + 1} to {max(steps) + 1} steps, so that "
            "their losses do not compare; measure until a number of steps"
        )
    mine, other = (fmean(one.value for one in some) for some in losses)
    fewest, apart = min(map(len, losses)), abs(mine - other)
    both = (
        f"loss {numbers.number(mine)} against {numbers.number(other)} after {max(steps) + 1} steps"
    )
    if apart == 0:
        return Agreement(f"{both}: equal in every digit; n = {fewest}", 0.0, fewest)
    seeds = max(map(len, groups))
    if seeds < 2:
        why = "one seed does not tell by how much another would change it"
        return Agreement(f"{both}, {numbers.number(apart)} apart: {why}", mine - other, fewest)
    spread = max(_range(group) for group in groups)
    verdict = "agree" if apart <= spread else "DIFFER"
    words = (
        f"{both}: they {verdict}, {numbers.number(apart)} apart where {seeds} seeds alone are "
        f"{numbers.number(spread)} apart; n = {fewest}"
    )
    return Agreement(words, mine - other, fewest)


def _by_seed(cells: Sequence[CellResult], like: CellResult) -> Mapping[object, list[LastLoss]]:
    found: dict[object, list[LastLoss]] = {}
    for cell in cells:
        if _but_seed(cell) == _but_seed(like):
            some = [one.last_loss for one in cell.trials if one.counted and one.last_loss]
            if some:
                found[cell.factors.get("cell_seed")] = some
    return found


def _but_seed(cell: CellResult) -> dict[str, object]:
    said = selectable(cell.workload, cell.framework, cell.factors, cell.options)
    return {name: one for name, one in said.items() if name != "cell_seed"}


def _range(group: Mapping[object, Sequence[LastLoss]]) -> float:
    means = [fmean(one.value for one in some) for some in group.values()]
    return max(means) - min(means)
