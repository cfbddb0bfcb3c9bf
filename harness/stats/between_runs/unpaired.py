"""Compare the same cells in two runs that were not measured together.

Nothing pairs the blocks of one run with those of another, so whole blocks are relabelled: if the
runs do not differ, every choice of which blocks make up the second run is as likely as the real
one (a permutation test, with the largest studentised difference over cells as in ``resample``).
That shows a difference between two sessions. Whether the change caused it, or the hour, it does not
say: a machine that was slower that day looks the same. ``sessions.py`` goes on from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, exp
from typing import TYPE_CHECKING

import numpy as np

from harness.stats import answers
from harness.stats.answers import ALPHA, EQUIVALENCE
from harness.stats.resample import SlopeFits, simultaneous

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

MOST_RELABELLINGS = 8192
"""More are not enumerated but drawn, seeded."""
FEWEST_TRIALS = 3
"""Of a cell on each side; whether they can tell depends on the number of relabellings."""


@dataclass(frozen=True)
class Change:
    """One cell in a second run against the first."""

    ratio: float | None
    low: float | None
    high: float | None
    level: float
    p: float | None
    answer: str
    before: int
    """Trials in the first run."""
    after: int
    why: str
    is_between: bool = False
    """Whether the interval holds what sessions differ by; else it is of these two alone."""
    is_bound: bool = False
    """Whether it stands on lost trials, and the difference may be larger."""


def changes(
    before: Mapping[str, Sequence[float | None]],
    after: Mapping[str, Sequence[float | None]],
    *,
    alpha: float = ALPHA,
    equivalence: float = EQUIVALENCE,
    seed: int = 0,
) -> dict[str, Change]:
    """Answer for every cell from the logarithms of its trials, by block (None where missing)."""
    names = list(before)
    first, second = _table(before, names), _table(after, names)
    changes_by_name: dict[str, Change] = {}
    enough = np.array(
        [min(_count(a), _count(b)) >= FEWEST_TRIALS for a, b in zip(first, second, strict=True)],
        dtype=bool,
    )
    family = _family(first[enough], second[enough], alpha, seed) if enough.any() else None
    place = 0
    for index, name in enumerate(names):
        a, b = first[index], second[index]
        counts = _count(a), _count(b)
        ratio = exp(float(np.nanmean(b) - np.nanmean(a))) if min(counts) else None
        if not enough[index] or family is None:
            why = f"{counts[0]} and {counts[1]} trials; fewer than {FEWEST_TRIALS} cannot tell"
            changes_by_name[name] = Change(
                ratio, None, None, 1 - alpha, None, "cannot tell", *counts, why
            )
            continue
        low, high, p = (float(column[place]) for column in family)
        place += 1
        answer, why = answers.answer(low, high, p, alpha, equivalence)
        ends = answers.ends(low, high)
        changes_by_name[name] = Change(ratio, *ends, 1 - alpha, p, answer, *counts, why)
    return changes_by_name


def _family(first: Array, second: Array, alpha: float, seed: int) -> tuple[Array, Array, Array]:
    """Compare all cells (rows) of two tables of logarithms (columns are blocks) at once."""
    both = np.concatenate((first, second), axis=1)
    present = np.isfinite(both)
    data = np.where(present, both, 0.0)
    labels = _relabellings(first.shape[1], second.shape[1], seed)
    here = present.astype(np.float64)
    later = here * (np.arange(both.shape[1]) >= first.shape[1])
    total, count_later = here.sum(axis=1)[:, None], later.sum(axis=1)[:, None]
    # what a relabelled second run holds: sum of logs, trials, and trials that truly are in it
    sums, counts, own = data @ labels.T, here @ labels.T, later @ labels.T
    all_sum, squares = data.sum(axis=1)[:, None], (data * data).sum(axis=1)[:, None]
    later_sum = (data * later).sum(axis=1)[:, None]
    usable = (counts > 0) & (counts < total)

    def relabelled(shift: Array) -> Array:
        moved = sums - shift * own
        moved_all = all_sum - shift * count_later
        moved_squares = squares - 2 * shift * later_sum + count_later * shift * shift
        size = np.where(usable, counts, 1.0)
        rest = np.where(usable, total - counts, 1.0)
        between = (moved / size - (moved_all - moved) / rest) ** 2 * size * rest / total
        spread = moved_squares - moved_all * moved_all / total
        within = np.maximum(spread - between, 1e-20) / (total - 2)
        statistic: Array = np.where(usable, np.sqrt(between / within), 0.0)
        return statistic

    size, rest = np.where(usable, counts, 1.0), np.where(usable, total - counts, 1.0)
    weight = np.where(usable, np.sqrt(size * rest / total), 0.0)
    centre = later_sum / count_later - (all_sum - later_sum) / (total - count_later)
    reach = np.sqrt(count_later * (total - count_later) / total)
    within = squares - all_sum * all_sum / total - (reach * centre) ** 2
    lines = SlopeFits(
        value=weight * (sums / size - (all_sum - sums) / rest),
        slope=weight * (own / size - (count_later - own) / rest),
        reach=reach,
        centre=centre,
        steepness=reach / np.sqrt(np.maximum(within, 1e-20) / (total - 2)),
    )
    return simultaneous(lines, relabelled(np.zeros_like(centre)), relabelled(centre), alpha)


def _relabellings(before: int, after: int, seed: int) -> Array:
    """Give rows of 0 and 1 that choose ``after`` of all blocks; the first row is the truth."""
    blocks = before + after
    real = np.arange(blocks) >= before
    if comb(blocks, after) <= MOST_RELABELLINGS:
        # with as many blocks in both, swapping the runs changes no |t|: half the choices suffice
        others = [
            chosen
            for chosen in combinations(range(blocks), after)
            if chosen != tuple(range(before, blocks)) and not (before == after and chosen[0] == 0)
        ]
        labels = np.zeros((len(others) + 1, blocks))
        labels[0] = real
        for row, chosen in enumerate(others, start=1):
            labels[row, list(chosen)] = 1
        return labels
    chance = np.random.default_rng(seed)
    drawn = np.argsort(chance.random((MOST_RELABELLINGS, blocks)), axis=1) < after
    drawn[0] = real
    return drawn.astype(np.float64)


def _count(row: Array) -> int:
    return int(np.isfinite(row).sum())


def _table(rows: Mapping[str, Sequence[float | None]], names: Sequence[str]) -> Array:
    width = max((len(rows[name]) for name in names), default=0)
    table = np.full((len(names), width), np.nan)
    for index, name in enumerate(names):
        for place, value in enumerate(rows[name]):
            table[index, place] = np.nan if value is None else value
    return table
