"""Contrasts: cells that differ in one factor only, put against each other block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean
from typing import Any

from harness.analysis.blocks.paired_blocks import rates_beside, rates_by_block
from harness.analysis.cell_names import NAMED_APART, factor_value, factor_words
from harness.analysis.ranking import Ranking
from harness.verdicts.results import CellResult

Levels = tuple[str, ...]
"""A cell's value of each factor, as ``repr`` tells them apart."""
Row = Mapping[int, float]
"""A logarithm of each block."""


@dataclass(frozen=True)
class Design:
    """The cells of one task by their factors, and each one's rate block by block."""

    factors: tuple[str, ...]
    values: Mapping[str, Mapping[str, Any]]
    """Of each factor, what stands behind each of its levels, in the order in which they come."""
    cells: Mapping[Levels, CellResult]
    logs: Mapping[Levels, Row]
    base: Mapping[str, str]
    """The level of each factor that its others are put against: the reference's."""
    ambiguous: int
    """So many cells differ from another in their options only, and are left out."""


def design_of(ranking: Ranking) -> Design:
    """Lay out a ranking's cells by the factors in which they differ."""
    candidates = dict.fromkeys(("framework", "strategy", *ranking.varied))
    factors = tuple(
        name
        for name in candidates
        if name != "workload" and len({repr(factor_value(c, name)) for c in ranking.cells}) > 1
    )
    alike: dict[Levels, list[CellResult]] = {}
    for cell in ranking.cells:
        alike.setdefault(_levels(cell, factors), []).append(cell)
    cells = {levels: some[0] for levels, some in alike.items() if len(some) == 1}
    values = {name: _values(ranking.cells, name) for name in factors}
    reference = ranking.reference
    head = reference or ranking.cells[0]
    return Design(
        factors,
        values,
        cells,
        {levels: _logs(cell, reference) for levels, cell in cells.items()},
        dict(zip(factors, _levels(head, factors), strict=True)),
        sum(len(some) for some in alike.values() if len(some) > 1),
    )


def _levels(cell: CellResult, factors: Sequence[str]) -> Levels:
    return tuple(repr(factor_value(cell, name)) for name in factors)


def _values(cells: Sequence[CellResult], name: str) -> dict[str, Any]:
    """Give a factor's values: numbers by size, words by their letters, absence first."""
    found = [factor_value(cell, name) for cell in cells]

    def place(value: Any) -> tuple[bool, float, str]:
        number = float(value) if isinstance(value, int | float) else 0.0
        return value is not None, number, str(value)

    return {repr(value): value for value in sorted(found, key=place)}


def _logs(cell: CellResult, reference: CellResult | None) -> Row:
    """Give log rates such that ratios are those within a block, or within a round of turns."""
    rates = rates_by_block(cell)
    if reference is not None and cell is not reference:
        rates = rates_beside(cell, reference)
    return {block: log(rate) for block, rate in rates.items()}


def level_words(design: Design, factor: str, level: str) -> str:
    """Put a level of a factor into words that need no heading."""
    value = design.values[factor][level]
    if factor in NAMED_APART:
        return f"no {factor}" if value == "none" else str(value)
    return factor_words(factor, value) or f"no {factor.replace('_', ' ')}"


@dataclass(frozen=True)
class Contrast:
    """One level of a factor against its base, over all pairs of cells that differ in it alone."""

    by_block: Row
    ratios: tuple[float, ...]
    """Of each pair."""


def main(design: Design, factor: str, level: str) -> Contrast | None:
    """Put a level against the base; None where no two cells differ in that alone."""
    return _contrast(design, list(_pairs(design, factor, level, list(design.cells))))


def within(
    design: Design, factor: str, level: str, other: str, at: str
) -> dict[Levels, tuple[Levels, Levels]]:
    """Give the pairs at one level of another factor, by all their remaining levels."""
    place = design.factors.index(other)
    some = [levels for levels in design.cells if levels[place] == at]
    where = {place, design.factors.index(factor)}
    return {
        tuple(value for index, value in enumerate(one) if index not in where): (one, base)
        for one, base in _pairs(design, factor, level, some)
    }


def difference(
    design: Design, factor: str, level: str, other: str, at: str
) -> tuple[Contrast, Contrast, Row] | None:
    """Say what a level does at another factor's base, at one of its levels, and the difference.

    Only over cells that are there four at a time; None where there are none.
    """
    first = within(design, factor, level, other, design.base[other])
    second = within(design, factor, level, other, at)
    both = [one for one in first if one in second]
    low = _contrast(design, [first[one] for one in both])
    high = _contrast(design, [second[one] for one in both])
    if low is None or high is None:
        return None
    common = low.by_block.keys() & high.by_block.keys()
    return low, high, {block: high.by_block[block] - low.by_block[block] for block in common}


def _pairs(
    design: Design, factor: str, level: str, some: Sequence[Levels]
) -> Iterator[tuple[Levels, Levels]]:
    place = design.factors.index(factor)
    for levels in some:
        if levels[place] == level:
            base = (*levels[:place], design.base[factor], *levels[place + 1 :])
            if base in design.cells:
                yield levels, base


def _contrast(design: Design, pairs: Sequence[tuple[Levels, Levels]]) -> Contrast | None:
    """Average the pairs in each block; a pair that a block lacks is replaced by its own mean."""
    rows = []
    for one, base in pairs:
        mine, its = design.logs[one], design.logs[base]
        row = {block: mine[block] - its[block] for block in mine.keys() & its.keys()}
        if row:
            rows.append((fmean(row.values()), row))
    if not rows:
        return None
    centre = fmean(mean for mean, _ in rows)
    by_block = {}
    for block in sorted({block for _, row in rows for block in row}):
        by_block[block] = centre + fmean(row[block] - mean for mean, row in rows if block in row)
    return Contrast(by_block, tuple(exp(mean) for mean, _ in rows))
