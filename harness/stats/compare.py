"""Compare cells with one reference, paired within blocks, all cells at once.

Per block and cell the datum is log(cell rate / reference rate). Under "no difference" the sign of
a whole block may be flipped without changing the joint distribution of all cells, so every one of
the 2^n flips is as likely as what was seen. Each cell's studentised |t| is compared with the
largest |t| over cells in every flip (Westfall & Young, Resampling-Based Multiple Testing, 1993,
single step), whatever the correlation between cells. A single cell is tested exactly, and its
interval is that test inverted. The variances of several cells lean on each other (``moderated``),
which finds far smaller differences in as many blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import ceil, exp, inf, log, sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING

import numpy as np

from harness.stats import answers, moderated
from harness.stats.answers import ALPHA, EQUIVALENCE, FEWEST_BLOCKS, MOST_BLOCKS
from harness.stats.moderated import Prior
from harness.stats.repetition import always_valid
from harness.stats.repetition.repeat import GROWTH
from harness.stats.resample import SlopeFits, simultaneous
from harness.stats.student import critical_t

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

FEWEST_BLOCKS_ALL_PAIRS = 13
EXACT_BLOCKS = 14
"""Up to here all flips are enumerated; beyond, a seeded sample of as many is drawn."""


@dataclass(frozen=True)
class Answer:
    """One cell against the reference."""

    ratio: float | None
    low: float | None
    high: float | None
    level: float
    p: float | None
    """Adjusted for looking at all cells."""
    answer: str
    """faster, slower, same or cannot tell."""
    blocks: int
    more_blocks: int | None
    why: str
    is_bound: bool = False
    """Whether the difference is at least what the interval says, and perhaps far larger."""


def compare(
    logs: Mapping[str, Sequence[float | None]],
    *,
    alpha: float = ALPHA,
    equivalence: float = EQUIVALENCE,
    seed: int = 0,
    at_any_time: bool = False,
) -> dict[str, Answer]:
    """Answer for every cell, from its log ratio in each block (None where a trial is missing).

    ``at_any_time``: a single cell is looked at after every block, until it is answered.
    """
    if not logs:
        return {}
    if at_any_time and len(logs) == 1:
        ((name, row),) = logs.items()
        return {name: _at_any_time([one for one in row if one is not None], alpha, equivalence)}
    table = np.array(
        [[np.nan if value is None else value for value in row] for row in logs.values()],
        dtype=np.float64,
    ).reshape(len(logs), -1)
    enough = np.isfinite(table).sum(axis=1) >= FEWEST_BLOCKS
    answers_by_name: dict[str, Answer] = {}
    family = _family(table[enough], alpha, seed) if enough.any() else None
    place = 0
    for index, name in enumerate(logs):
        data = table[index][np.isfinite(table[index])]
        if not enough[index] or family is None:
            answers_by_name[name] = _too_few(data, alpha)
            continue
        answers_by_name[name] = _answer(data, family, place, alpha, equivalence)
        place += 1
    return answers_by_name


def _at_any_time(data: Sequence[float], alpha: float, equivalence: float) -> Answer:
    """Answer for one cell by the interval that holds at every look."""
    blocks = len(data)
    if blocks < always_valid.FEWEST_BLOCKS_AT_ANY_TIME:
        return _too_few(np.array(data), alpha, always_valid.FEWEST_BLOCKS_AT_ANY_TIME)
    low, high = always_valid.interval(data, alpha)
    p, centre = always_valid.p_value(data), fmean(data)
    answered, why = answers.answer(low, high, p, alpha, equivalence)
    more = None
    if answered == "cannot tell":
        reach = partial(always_valid.reach, deviation=stdev(data), alpha=alpha)
        more = answers.more_blocks(centre, blocks, margin=log(1 + equivalence), reach=reach)
    ends = answers.ends(low, high)
    return Answer(exp(centre), *ends, 1 - alpha, p, answered, blocks, more, why)


def declared_looks(first: int, most: int, alpha: float = ALPHA) -> tuple[int, ...]:
    """Choose as many looks at several cells as can each speak with their share of the error."""
    best: tuple[int, ...] = (most,)
    for count in range(2, most + 1):
        looks = [first]
        while moderated.smallest_p(looks[0]) > alpha / count * (1 + 1e-9):
            looks[0] += 1
        while len(looks) < count - 1:
            looks.append(ceil(looks[-1] * GROWTH))
        if looks[-1] >= most:
            break
        best = (*looks, most)
    return best


def all_pairs(
    logs: Mapping[tuple[str, str], Sequence[float | None]], *, alpha: float = ALPHA, seed: int = 0
) -> dict[tuple[str, str], Answer]:
    """Answer for every pair of cells; on request only, as it takes many blocks to say anything.

    A single pair is a cell beside its reference, and has the answer that it has there.
    """
    pairs = {f"{first}\0{second}": row for (first, second), row in logs.items()}
    found = compare(pairs, alpha=alpha, seed=seed)
    answers_by_pair: dict[tuple[str, str], Answer] = {}
    for both, answer in found.items():
        first, second = both.split("\0")
        if len(found) > 1 and answer.blocks < FEWEST_BLOCKS_ALL_PAIRS:
            missing = FEWEST_BLOCKS_ALL_PAIRS - answer.blocks
            why = f"all pairs need {FEWEST_BLOCKS_ALL_PAIRS} blocks, there are {answer.blocks}"
            answer = _unknown(answer.ratio, answer.blocks, missing, why, alpha)
        answers_by_pair[first, second] = answer
    return answers_by_pair


def reachable_looks(looks: Sequence[int], alpha: float = ALPHA) -> tuple[tuple[int, ...], float]:
    """Split the error over those looks (numbers of blocks) at which anything could be said.

    A look at n blocks can only speak if the smallest p-value there is does not exceed its share;
    looks that cannot are dropped, which gives the others a larger share.
    """
    reachable = sorted(look for look in set(looks) if look >= FEWEST_BLOCKS)
    while reachable:
        share = alpha / len(reachable)
        silent = [look for look in reachable if moderated.smallest_p(look) > share * (1 + 1e-9)]
        if not silent:
            return tuple(reachable), share
        reachable = reachable[1:]
    return (), alpha


def pilot_leader(rates: Mapping[str, float | None]) -> str | None:
    """Choose the fastest cell of a pilot block as the reference; the block is then discarded.

    Choosing it from the blocks that are compared would favour whichever cell was lucky in them.
    """
    known = {name: rate for name, rate in rates.items() if rate is not None}
    return max(known, key=lambda name: (known[name], name)) if known else None


@lru_cache(maxsize=4)
def _flips(blocks: int, seed: int) -> Array:
    """Give one of each pair of opposite flips (|t| is the same); the first flips nothing."""
    if blocks <= EXACT_BLOCKS:
        bits = np.arange(2 ** (blocks - 1))[:, None] >> np.arange(blocks) & 1
        return np.where(bits, -1.0, 1.0)
    signs = np.random.default_rng(seed).integers(0, 2, (2 ** (EXACT_BLOCKS - 1), blocks))
    signs[0] = 0
    return np.where(signs, -1.0, 1.0)


def _t(sums: Array, squares: Array, counts: Array) -> Array:
    """Give |t| from the sum and the sum of squares of ``counts`` values."""
    means = sums / counts
    variances = np.maximum(squares / counts - means * means, 1e-24) / (counts - 1)
    ratio: Array = np.abs(means) / np.sqrt(variances)
    return ratio


@dataclass(frozen=True)
class _Family:
    """What all compared cells get together, one element per cell."""

    low: Array
    high: Array
    p: Array
    prior: Prior
    """What a single cell does not have weighs nothing."""


def _family(table: Array, alpha: float, seed: int) -> _Family:
    if len(table) > 1:
        return _Family(*moderated.intervals(table, _flips(table.shape[1], seed), alpha))
    return _Family(*_exact(table[:, np.isfinite(table[0])], seed, alpha), Prior(0.0, 0.0))


def _exact(table: Array, seed: int, alpha: float) -> tuple[Array, Array, Array]:
    """Give one cell's interval, its exact test inverted, and p-value."""
    flips = _flips(table.shape[1], seed)
    counts = np.full((1, 1), float(table.shape[1]))
    sums, signs = table @ flips.T, flips.sum(axis=1)[None, :]
    squares = (table * table).sum(axis=1)[:, None]
    centre = sums[:, :1] / counts

    def flipped(shift: Array) -> Array:
        moved = squares - 2 * shift * sums[:, :1] + counts * shift * shift
        return _t(sums - shift * signs, moved, counts)

    deviation = np.sqrt(np.maximum(squares / counts - centre * centre, 1e-24) / (counts - 1))
    lines = SlopeFits(sums, signs, reach=counts, centre=centre, steepness=1 / deviation)
    return simultaneous(lines, flipped(np.zeros_like(centre)), flipped(centre), alpha)


def _answer(data: Array, family: _Family, place: int, alpha: float, equivalence: float) -> Answer:
    low, high, p = (float(one[place]) for one in (family.low, family.high, family.p))
    blocks, centre = len(data), float(data.mean())
    answered, why = answers.answer(low, high, p, alpha, equivalence)
    more = None
    if answered == "cannot tell":
        freedom = np.array([blocks - 1.0])
        variance = family.prior.moderated(data.var(ddof=1, keepdims=True), freedom)
        reach = partial(
            _reach,
            deviation=sqrt(float(variance[0])),
            alpha=alpha,
            cells=len(family.low),
            prior=family.prior.freedom,
        )
        more = answers.more_blocks(centre, blocks, margin=log(1 + equivalence), reach=reach)
        if more is None:
            why += f", and more than {MOST_BLOCKS} blocks would be needed"
    ends = answers.ends(low, high)
    return Answer(exp(centre), *ends, 1 - alpha, p, answered, blocks, more, why)


def _reach(count: int, *, deviation: float, alpha: float, cells: int, prior: float) -> float:
    """Give half the interval of so many blocks, with alpha shared equally by the cells.

    That asks for slightly too many blocks. ``prior`` is what the other cells add to the degrees of
    freedom.
    """
    if moderated.smallest_p(count) > alpha:
        return inf
    return critical_t(alpha / cells, count - 1 + prior) * deviation / sqrt(count)


def _too_few(data: Array, alpha: float, fewest: int = FEWEST_BLOCKS) -> Answer:
    blocks = len(data)
    ratio = exp(float(data.mean())) if blocks else None
    why = f"{blocks} common blocks; fewer than {fewest} cannot tell"
    return _unknown(ratio, blocks, fewest - blocks, why, alpha)


def _unknown(ratio: float | None, blocks: int, more: int | None, why: str, alpha: float) -> Answer:
    return Answer(ratio, None, None, 1 - alpha, None, "cannot tell", blocks, more, why)
