"""Turn one resampling statistic of many cells into p-values and intervals for all.

Rows are cells, columns are rearrangements of the data (sign flips, relabellings) that are equally
likely if the hypothesis holds; the first column is the data as they were seen. A cell's p-value
counts in how many rearrangements any cell reaches what this one showed: Westfall & Young's single
step. Moving the hypothesised difference of a cell moves each of its rearrangements' differences
along a straight line, so that each reaches the data up to one known distance, and an end of an
interval is one of these distances, found by sorting instead of trying.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


@dataclass(frozen=True)
class SlopeFits:
    """How the statistic of each rearrangement changes with the hypothesised difference.

    Up to a factor that all rearrangements of a cell share, it is |value - difference * slope|; of
    the data themselves it is reach * |difference - centre|, and no slope exceeds the reach.
    """

    value: Array
    slope: Array
    reach: Array
    """One row per cell, like what follows."""
    centre: Array
    """Where the data show no difference from the hypothesis: the estimates."""
    steepness: Array
    """The data's own |t| is this times the distance from the centre."""


def simultaneous(
    lines: SlopeFits, nowhere: Array, centred: Array, alpha: float
) -> tuple[Array, Array, Array]:
    """Give both ends of the intervals, which hold for all cells together, and adjusted p-values.

    ``nowhere`` holds |t| of every rearrangement where no cell differs, ``centred`` where each
    differs as was seen. In the intervals the other cells stand centred; in the p-values they stand
    at no difference, which keeps the test of "no difference" exact.
    """
    p = _p_value(nowhere, _largest_of_others(nowhere))
    others = _largest_of_others(centred) / lines.steepness
    # a rearrangement counts up to the distance at which neither it nor another cell reaches more
    beyond = int(alpha * centred.shape[1] + 1e-9)
    place = centred.shape[1] - 1 - beyond
    ends = []
    for way in (-1.0, 1.0):
        reached = np.maximum(_reached(lines, way), others)
        distance = np.partition(reached, place, axis=1)[:, place]
        ends.append(lines.centre[:, 0] + way * distance)
    return ends[0], ends[1], p


def _reached(lines: SlopeFits, way: float) -> Array:
    """Give up to which distance from the centre each rearrangement reaches what the data show."""
    ahead = lines.value - lines.centre * lines.slope
    none = -1e-9 * lines.reach / lines.steepness
    farthest = np.full(ahead.shape, -np.inf)
    for sign in (1.0, -1.0):
        pace = lines.reach + sign * way * lines.slope
        moves = pace > 1e-12 * lines.reach
        always = np.where(sign * ahead >= none, np.inf, -np.inf)
        np.maximum(farthest, np.divide(sign * ahead, pace, out=always, where=moves), out=farthest)
    return farthest


def _p_value(own: Array, others: Array) -> Array:
    seen = own[:, :1] * (1 - 1e-9)  # the data as seen must count as having reached themselves
    share: Array = (np.maximum(own, others) >= seen).mean(axis=1)
    return share


def _largest_of_others(table: Array) -> Array:
    """Give, for each cell and rearrangement, the largest value of the other cells."""
    if len(table) == 1:
        return np.zeros_like(table)
    columns = np.arange(table.shape[1])
    leader = table.argmax(axis=0)
    largest = table[leader, columns]
    rest = table.copy()
    rest[leader, columns] = 0.0  # a statistic is never less
    others = np.broadcast_to(largest, table.shape).copy()
    others[leader, columns] = rest.max(axis=0)
    return others
