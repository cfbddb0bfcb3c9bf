"""Name the members of a fleet that differ from the others, at a declared error for all of them.

A table holds log values by measure, member and block. What a block did to all is taken away: the
datum is how far a member lies from the block's median, and a member's deviation is the median over
its blocks, so that one bad moment is nobody's fault. There are two questions, and a member is named
only where both are answered by yes:

1. **Is it always the same one?** If members were alike, each block could have dealt its data to
   them in any order. So members are shuffled within each block, the same way in all measures, and
   each mean over blocks is held to the largest of all members and measures in every shuffle
   (Westfall & Young, Resampling-Based Multiple Testing, 1993), in units of each measure's robust
   spread. A bad moment counts in every shuffle too, and so explains itself.
2. **Does it lie outside of what members differ by anyway?** No two chips are alike. From eight
   members on, a deviation must exceed what the largest of so many normal ones reaches in units of
   their own robust spread, and so must three quarters of the member's blocks, on the same side: of
   many members some have three bad moments of six, which move a median. Of fewer than eight the
   spread is not known, and the first question stands alone.

Each holds the error where its assumption does (members alike, or normal). Half of the error is
spent on each, for fleets that are neither. Three members are needed: of two that differ nobody can
say which one is the odd one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Flags = NDArray[np.bool_]

ALPHA = 0.05
FEWEST_MEMBERS, FEWEST_BLOCKS, FEWEST_SPREAD = 3, 6, 8
SHUFFLES, _DRAWS = 1999, 4000
SPENT = 0.5
"""Share of the nominal error at which both questions are asked."""
_TO_SIGMA = 1.4826
"""What a median absolute deviation is multiplied by to be a normal distribution's sigma."""
_TINY = 1e-12
_NUMBERS_AT_ONCE = 250_000
"""Shuffled together: enough to be quick, few enough for a processor's cache."""


@dataclass(frozen=True)
class OddOnes:
    """How far each member lies from the others in each measure (rows), and which are named."""

    deviation: Array
    """Median over blocks of log(member / median of all); NaN where nothing was seen of it."""
    p: Array
    """Adjusted for looking at all members and measures."""
    is_outside: Flags
    """Whether it lies outside of the spread between members."""
    is_named: Flags


def odd_ones(
    table: Array, *, alpha: float = ALPHA, shuffles: int = SHUFFLES, seed: int = 1
) -> OddOnes:
    """Name members that are odd at a family-wise error of ``alpha``; gaps are NaN."""
    measures, members, blocks = table.shape
    data = table - np.nanmedian(table, axis=1, keepdims=True)
    scale = np.maximum(_TO_SIGMA * np.nanmedian(np.abs(data), axis=(1, 2)), _TINY)[:, None]
    is_seen: Flags = np.asarray(np.isfinite(data).any(axis=2))
    deviation = _where(is_seen, np.nanmedian(_known(data, is_seen), axis=2))
    if members < FEWEST_MEMBERS or blocks < FEWEST_BLOCKS:
        nobody = np.zeros((measures, members), dtype=bool)
        return OddOnes(deviation, np.ones((measures, members)), nobody, nobody)
    seen = np.abs(_mean(data, axis=2)) / scale
    largest = _largest(data, scale, shuffles, seed)
    p = (1 + (largest[None, None, :] >= seen[:, :, None] - _TINY).sum(axis=2)) / (1 + shuffles)
    steady = _where(is_seen, _steadily(_known(data, is_seen)))
    is_outside = _outside(deviation, steady, alpha * SPENT)
    return OddOnes(deviation, p, is_outside, (p <= alpha * SPENT) & is_outside & is_seen)


def _known(data: Array, is_seen: Flags) -> Array:
    """Give a member of which nothing was seen in a measure zeros, which stand for no number."""
    known: Array = np.where(is_seen[:, :, None], data, 0.0)
    return known


def _where(is_seen: Flags, values: Array) -> Array:
    found: Array = np.where(is_seen, values, np.nan)
    return found


def _mean(data: Array, axis: int) -> Array:
    """Average what is known; 0 where nothing is."""
    found: Array = np.nansum(data, axis=axis) / np.maximum(np.isfinite(data).sum(axis=axis), 1)
    return found


def _largest(data: Array, scale: Array, shuffles: int, seed: int) -> Array:
    """Give the largest scaled deviation of any member and measure in each shuffle."""
    draw = np.random.default_rng(seed)
    _, members, blocks = data.shape
    together = max(1, _NUMBERS_AT_ONCE // data.size)
    found = []
    for first in range(0, shuffles, together):
        count = min(together, shuffles - first)
        order = draw.random((count, members, blocks)).argsort(axis=1)
        mixed = np.take_along_axis(data[None], order[:, None], axis=2)
        found.append((np.abs(_mean(mixed, axis=3)) / scale).max(axis=(1, 2)))
    return np.concatenate(found)


def _steadily(data: Array) -> Array:
    """Give how far three quarters of a member's blocks lie off, at least, on the same side."""
    low = np.nanquantile(data, 0.25, axis=2, method="lower")
    high = np.nanquantile(data, 0.75, axis=2, method="higher")
    steady: Array = np.where(low > 0, low, np.where(high < 0, high, 0.0))
    return steady


def _outside(deviation: Array, steady: Array, alpha: float) -> Flags:
    measures, members = deviation.shape
    if members < FEWEST_SPREAD:
        return np.ones((measures, members), dtype=bool)
    middle, spread = _middle_and_spread(deviation)
    allowed = critical_spread(measures, members, alpha) * spread
    outside: Flags = (np.abs(deviation - middle) > allowed) & (np.abs(steady - middle) > allowed)
    return outside


def _middle_and_spread(deviation: Array) -> tuple[Array, Array]:
    """Give the middle of members' deviations, and their robust spread."""
    middle = np.nanmedian(deviation, axis=-1, keepdims=True)
    spread = _TO_SIGMA * np.nanmedian(np.abs(deviation - middle), axis=-1, keepdims=True)
    return middle, np.maximum(spread, _TINY)


@lru_cache
def critical_spread(measures: int, members: int, alpha: float) -> float:
    """Give what the largest of so many normal deviations exceeds with this probability."""
    draw = np.random.default_rng(1)
    normal = draw.standard_normal((_DRAWS, measures, members))
    middle, spread = _middle_and_spread(normal)
    return float(np.quantile((np.abs(normal - middle) / spread).max(axis=(1, 2)), 1 - alpha))
