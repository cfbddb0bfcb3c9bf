"""Main effects and interactions of a large study's factors, with joint intervals.

An effect is the mean, over all pairs of cells that differ in one factor alone, of their log ratio
in a block; the blocks are then compared as those of cells are, all effects of a task together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import exp, log
from statistics import fmean
from typing import TYPE_CHECKING, Any

from harness.analysis.effects.contrasts import Design, Row, design_of, difference, level_words, main
from harness.analysis.ranking import Ranking
from harness.verdicts.results import Interval

if TYPE_CHECKING:
    from harness.stats.compare import Answer

FEWEST_CELLS = 20
"""From so many cells on a reader asks what each factor does before which cell is first."""
_MOST_LEVELS = 12
"""A factor of more levels is one of sizes: what each pair of them does to others is not asked."""


@dataclass(frozen=True)
class Effect:
    """What one level of a factor does, against the factor's base."""

    factor: str
    level: str
    """In words."""
    base: str
    ratio: float
    interval: Interval | None
    answer: str
    pairs: int
    """Of cells that differ in nothing else."""
    least: float
    """The smallest ratio of a pair."""
    most: float
    why: str

    @property
    def is_everywhere(self) -> bool:
        """Whether every pair lies on the same side of 1."""
        return self.pairs > 1 and (self.least > 1 or self.most < 1)


@dataclass(frozen=True)
class Interaction:
    """What one level does at two levels of another factor, where that differs."""

    level: str
    base: str
    other: str
    other_base: str
    ratio_at_base: float
    ratio_at_other: float
    interval: Interval
    """Of the second ratio over the first."""
    groups: int
    """Of four cells each."""


@dataclass(frozen=True)
class Effects:
    """The factors of one task, that with the largest effect first."""

    by_factor: tuple[tuple[Effect, ...], ...]
    interactions: tuple[Interaction, ...]
    """Those whose interval excludes 1, the largest first."""
    tested: int
    """So many interactions were looked at."""
    unpaired: tuple[str, ...]
    """Levels that no two cells differ in alone."""
    ambiguous: int
    blocks: int
    level: float

    @property
    def every(self) -> tuple[Effect, ...]:
        """All effects."""
        return tuple(one for some in self.by_factor for one in some)


def spread(effects: Sequence[Effect]) -> float:
    """Give how far a factor's levels lie apart, as a factor."""
    logs = [0.0, *(log(one.ratio) for one in effects)]
    return exp(max(logs) - min(logs))


def effects_of(ranking: Ranking, *, seed: int) -> Effects | None:
    """Say what factors do; nothing of few cells, several runs, pairs, or sizes of messages."""
    is_asked = len(ranking.cells) >= FEWEST_CELLS and len(ranking.runs) == 1
    if not is_asked or ranking.is_pair or ranking.sizes > 1:
        return None
    design = design_of(ranking)
    by_factor, unpaired, answers = _main_effects(design, seed)
    if not by_factor:
        return None
    interactions, tested = _interactions(design, seed)
    return Effects(
        tuple(sorted(by_factor, key=spread, reverse=True)),
        interactions,
        tested,
        unpaired,
        design.ambiguous,
        max(answer.blocks for answer in answers),
        answers[0].level,
    )


def _main_effects(
    design: Design, seed: int
) -> tuple[list[tuple[Effect, ...]], tuple[str, ...], list[Answer]]:
    contrasts, unpaired = {}, []
    for factor in design.factors:
        for level in design.values[factor]:
            if level == design.base[factor]:
                continue
            found = main(design, factor, level)
            if found is None:
                unpaired.append(level_words(design, factor, level))
            else:
                contrasts[factor, level] = found
    rows = {both: found.by_block for both, found in contrasts.items()}
    answers = _answers(rows, seed)
    by_factor: dict[str, list[Effect]] = {}
    for (factor, level), answer in answers.items():
        ratios = contrasts[factor, level].ratios
        by_factor.setdefault(factor, []).append(
            Effect(
                factor,
                level_words(design, factor, level),
                level_words(design, factor, design.base[factor]),
                exp(fmean(rows[factor, level].values())),
                _interval(answer, len(rows)),
                answer.answer,
                len(ratios),
                min(ratios),
                max(ratios),
                answer.why,
            )
        )
    return [tuple(some) for some in by_factor.values()], tuple(unpaired), list(answers.values())


def _interactions(design: Design, seed: int) -> tuple[tuple[Interaction, ...], int]:
    few = [name for name in design.factors if len(design.values[name]) <= _MOST_LEVELS]
    found = {
        (factor, level, other, at): told
        for factor, other in combinations(few, 2)
        for level in design.values[factor]
        for at in design.values[other]
        if level != design.base[factor] and at != design.base[other]
        if (told := difference(design, factor, level, other, at)) is not None and told[2]
    }
    answers = _answers({names: told[2] for names, told in found.items()}, seed)
    clear = []
    for (factor, level, other, at), answer in answers.items():
        low, high, _ = found[factor, level, other, at]
        interval = _interval(answer, len(answers))
        if interval is None or answer.answer not in ("faster", "slower"):
            continue
        clear.append(
            Interaction(
                level_words(design, factor, level),
                level_words(design, factor, design.base[factor]),
                level_words(design, other, at),
                level_words(design, other, design.base[other]),
                exp(fmean(low.by_block.values())),
                exp(fmean(high.by_block.values())),
                interval,
                len(low.ratios),
            )
        )
    clear.sort(key=lambda one: abs(log(one.ratio_at_other / one.ratio_at_base)), reverse=True)
    return tuple(clear), len(found)


def _answers(rows: Mapping[Any, Row], seed: int) -> dict[Any, Answer]:
    """Answer for all rows together."""
    from harness.stats.compare import compare  # brings numpy, which small pages do without

    blocks = sorted({block for row in rows.values() for block in row})
    names = {str(index): names for index, names in enumerate(rows)}
    logs = {index: [rows[names].get(block) for block in blocks] for index, names in names.items()}
    return {names[index]: answer for index, answer in compare(logs, seed=seed).items()}


def _interval(answer: Answer, together: int) -> Interval | None:
    if answer.low is None or answer.high is None:
        return None
    meaning = f"inverted sign flips of {answer.blocks} blocks, {together} held together"
    return Interval(answer.low, answer.high, answer.level, meaning)
