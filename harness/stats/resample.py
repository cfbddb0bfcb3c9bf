"""This file turns one resampling statistic of many cells into p-values and intervals for all.

The statistic is given as a function of hypothesised differences (one per cell): rows are cells,
columns are rearrangements of the data (sign flips, relabellings) that are equally likely if the
hypothesis holds, and the first column is the data as they were seen. A cell's p-value counts in
how many rearrangements any cell reaches what this one showed: Westfall & Young's single step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Statistic = Callable[[Array], Array]

_DOUBLINGS = 60
_HALVINGS = 24


def simultaneous(
    statistic: Statistic, centre: Array, scale: Array, alpha: float
) -> tuple[Array, Array, Array]:
    """Give both ends of the intervals, which hold for all cells together, and adjusted p-values.

    ``centre`` holds the estimates, ``scale`` any positive lengths of their errors' order, both one
    row per cell. In the intervals the other cells stand centred where they were seen; in the
    p-values they stand at no difference, which keeps the test of "no difference" exact.
    """
    nowhere = np.zeros_like(centre)
    seen = statistic(nowhere)
    p = _p_value(seen, _largest_of_others(seen))[:, 0]
    others = _largest_of_others(statistic(centre))
    ends = []
    for way in (-1.0, 1.0):
        inside, outside = centre.copy(), centre + way * scale
        for _ in range(_DOUBLINGS):
            kept = _p_value(statistic(outside), others) > alpha
            if not kept.any():
                break
            inside = np.where(kept, outside, inside)
            outside = np.where(kept, centre + 2 * (outside - centre), outside)
        unbounded = _p_value(statistic(outside), others) > alpha
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            kept = _p_value(statistic(middle), others) > alpha
            inside, outside = np.where(kept, middle, inside), np.where(kept, outside, middle)
        ends.append(np.where(unbounded, way * np.inf, outside)[:, 0])
    return ends[0], ends[1], p


def _p_value(own: Array, others: Array) -> Array:
    seen = own[:, :1] * (1 - 1e-9)  # the data as seen must count as having reached themselves
    share: Array = (np.maximum(own, others) >= seen).mean(axis=1)[:, None]
    return share


def _largest_of_others(table: Array) -> Array:
    """Give, for each cell and rearrangement, the largest value of the other cells."""
    if len(table) == 1:
        return np.zeros_like(table)
    order = np.argpartition(table, -2, axis=0)
    columns = np.arange(table.shape[1])
    leader = order[-1]
    others = np.broadcast_to(table[leader, columns], table.shape).copy()
    others[leader, columns] = table[order[-2], columns]
    return others
