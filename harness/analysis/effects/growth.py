"""Find cells that differ in one number only, and how many times as fast more of it makes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.analysis import numbers
from harness.analysis.blocks.paired_blocks import of_ratios, rates_beside, rates_by_block
from harness.analysis.cell_names import factor_words, name_of
from harness.analysis.ranking import Ranking
from harness.analysis.results import Results
from harness.stats.answers import FEWEST_BLOCKS
from harness.stats.scaling import ratio_by_block
from harness.study.factors import FACTORS
from harness.units import counted
from harness.verdicts.results import CellResult, Interval
from harness.worker.scale import FACTORS as OF_SCALE

_FEWEST_LEVELS = 3
"""Of a number on one line: two are a comparison."""
_TOLD_ELSEWHERE = frozenset(OF_SCALE) - {"batch"} | {"message_bytes"}
_NAMES = frozenset({"node", "cell_seed"})
"""Numbers that are names: there is no more or less of them."""
_GROWING = frozenset(name for name, one in FACTORS.items() if one.type == "count") - (
    _TOLD_ELSEWHERE | _NAMES
)


@dataclass(frozen=True)
class Level:
    """A cell with so much of a factor, against that with the least."""

    count: int
    cell: CellResult
    ratio: float
    interval: Interval | None
    """None of the least itself, and where fewer than two blocks have both."""
    blocks: int
    """So many have both."""

    @property
    def is_told(self) -> bool:
        """Whether it differs from the least by more than blocks do."""
        return self.interval is not None and not self.interval.low <= 1 <= self.interval.high


@dataclass(frozen=True)
class Growth:
    """Cells alike but for one number, the least first."""

    workload: str
    factor: str
    name: str
    unit: str
    levels: tuple[Level, ...]

    @property
    def first(self) -> Level:
        """The one of the least, which the others are held against."""
        return self.levels[0]

    @property
    def best(self) -> Level:
        """The fastest one."""
        return max(self.levels, key=lambda one: one.ratio)


def growths(results: Results) -> list[Growth]:
    """Find every line of three levels or more, by workload and by factor."""
    return [
        line
        for ranking in results.rankings
        if not ranking.is_pair
        for factor in ranking.varied
        if factor in _GROWING
        for line in _lines(ranking, factor)
    ]


def _lines(ranking: Ranking, factor: str) -> Iterator[Growth]:
    groups: dict[tuple[object, ...], list[CellResult]] = {}
    for cell in ranking.cells:
        if cell.factors.get(factor) is not None:
            groups.setdefault(_alike(cell, factor), []).append(cell)
    for cells in groups.values():
        cells.sort(key=lambda one: int(one.factors[factor]))
        levels = tuple(_levels(cells, factor))
        if len(levels) >= _FEWEST_LEVELS:
            others = [name for name in ranking.distinguishing if name != factor]
            name = name_of(cells[0], others, ranking.distinguishing)
            machine = f" · {ranking.machine(cells[0])}" if len(ranking.runs) > 1 else ""
            yield Growth(ranking.workload, factor, name + machine, ranking.unit, levels)


def _alike(cell: CellResult, factor: str) -> tuple[object, ...]:
    others = sorted((k, repr(v)) for k, v in cell.factors.items() if k != factor)
    options = sorted((k, repr(v)) for k, v in cell.options.items())
    return (cell.run, cell.framework, cell.strategy, tuple(others), tuple(options))


def _levels(cells: Sequence[CellResult], factor: str) -> Iterator[Level]:
    base = cells[0]
    for cell in cells:
        count = int(cell.factors[factor])
        if cell is base:
            yield Level(count, cell, 1.0, None, len(rates_by_block(base)))
        elif found := ratio_by_block(rates_by_block(base), beside := rates_beside(cell, base)):
            ratio, between = found
            both = len(rates_by_block(base).keys() & beside.keys())
            yield Level(count, cell, ratio, of_ratios(between) if between else None, both)


def in_words(line: Growth) -> str:
    """Say what the most of a factor brings, and where less of it brought more."""
    best, most = line.best, line.levels[-1]
    least = _words(line, line.first)
    blocks = min(one.blocks for one in line.levels)
    if blocks >= FEWEST_BLOCKS and not any(one.is_told for one in line.levels[1:]):
        return f"no difference can be told from {least} to {_words(line, most)}"
    few = "" if blocks >= FEWEST_BLOCKS else f", by {counted(blocks, 'block')}: too few to be sure"
    if best is line.first:
        return f"fastest with {least}; {_times(most)} as fast with {_words(line, most)}{few}"
    told = f"{_times(best)} as fast with {_words(line, best)} as with {least}"
    if best is not most:
        told += f", and {_times(most)} with {_words(line, most)}"
    return told + few


def _words(line: Growth, level: Level) -> str:
    return factor_words(line.factor, level.cell.factors[line.factor])


def _times(level: Level) -> str:
    span = ""
    if level.interval is not None:
        span = f" ({numbers.ratio_span(level.interval, level.ratio)})"
    return f"{numbers.ratio(level.ratio, level.interval)}{span} times"
