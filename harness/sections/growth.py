"""The section of how rates change with a number: threads that read, samples of a batch, buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from harness.analysis.effects.growth import Growth, growths, in_words
from harness.analysis.evidence import Evidence
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.sections.contract.blocks import Block, Brief, Chart, Curve, Curves, Gist, Point, Sheet
from harness.sections.contract.section import Section
from harness.units import counted

_MOST = 8
"""Lines of one chart: more cannot be told from each other."""
_MOST_LEVELS = 16
"""Of a line that is drawn: every power of two up to 32,768."""
_TOLD = 6
"""Lines of a terminal."""
_HOW = (
    "Each line is of cells alike in all else; rates are held against the least of the number, "
    "block by block, with the order-statistic interval of the blocks' own ratios."
)


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    lines = growths(results)
    several = len({line.workload for line in lines}) > 1
    yield Sheet(_table(lines, "growth", "How rates change with a number"), rows_on_page=())
    by_gain = sorted(lines, key=lambda line: line.best.ratio, reverse=True)
    if by_gain:
        yield Gist(f"{by_gain[0].name}: {in_words(by_gain[0])}")
    drawn = [line for line in lines if len(line.levels) <= _MOST_LEVELS]
    groups = groupby(drawn, key=lambda line: (line.workload, line.factor))
    for number, (_, group) in enumerate(groups, 1):
        yield _chart(tuple(group), number)
    told = []
    for line in by_gain[:_TOLD]:
        workload = f"{line.workload} · " if several else ""
        told.append(f"{workload}{line.name}: {in_words(line)}.")
    if len(lines) > _TOLD:
        told.append(f"And {counted(len(lines) - _TOLD, 'line')} more, on the page.")
    yield Brief("How rates change with a number:", tuple(told))


def _chart(lines: Sequence[Growth], number: int) -> Chart:
    title = f"{lines[0].workload} over {_words(lines[0])}"
    drawn = sorted(lines, key=lambda line: line.best.ratio, reverse=True)[:_MOST]
    note = _HOW
    if len(lines) > len(drawn):
        note += f" The {_MOST} of {len(lines)} that gain most are drawn; table `growth` has all."
    drawing = Curves(tuple(map(_curve, drawn)), _words(lines[0]), are_shares=False)
    return Chart(drawing, _table(drawn, f"growth-{number}", title), title, note)


def _words(line: Growth) -> str:
    return line.factor.replace("_", " ")


def _curve(line: Growth) -> Curve:
    points = tuple(
        Point(
            one.count,
            one.ratio,
            *((one.interval.low, one.interval.high) if one.interval else (None, None)),
        )
        for one in line.levels
    )
    cell = line.first.cell
    return Curve(line.name, cell.run, cell.framework, points)


def _table(lines: Sequence[Growth], name: str, title: str) -> Table:
    columns = (
        Column("workload", "workload", "name"),
        Column("cell", "cell", "name"),
        Column("factor", "of", "name"),
        Column("count", "so many", "count"),
        Column("rate", "rate", "number"),
        Column("rate_interval", "interval", "interval"),
        Column("unit", "unit"),
        Column("trials", "n", "count"),
        Column("ratio", "× the least", "ratio"),
        Column("interval", "interval", "interval"),
    )
    rows = []
    for line in lines:
        for one in line.levels:
            rate = one.cell.rate
            rows.append(
                (
                    line.workload,
                    line.name,
                    _words(line),
                    one.count,
                    rate.value if rate else None,
                    rate.interval if rate else None,
                    line.unit,
                    rate.n if rate else 0,
                    one.ratio,
                    one.interval,
                )
            )
    return Table(name, title, columns, tuple(rows))


SECTION = Section("How rates change with a number", 250, _blocks, contents="Curves")
