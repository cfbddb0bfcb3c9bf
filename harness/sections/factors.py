"""The section of what each factor does by itself, and of the best cells, of large studies."""

from __future__ import annotations

from collections.abc import Iterator

from harness.analysis import numbers
from harness.analysis.effects.effects import Effect, Effects
from harness.analysis.effects.squares import Squares, squares_of
from harness.analysis.effects.words import interaction, sentences
from harness.analysis.evidence import Evidence
from harness.analysis.ranking import Ranking
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.sections.contract import blocks
from harness.sections.contract.blocks import (
    Block,
    Brief,
    Chart,
    Fold,
    Group,
    Note,
    Ratio,
    Ratios,
    Sheet,
    Square,
)
from harness.sections.contract.columns import parts
from harness.sections.contract.section import Section
from harness.units import counted
from harness.verdicts.results import CellResult

_DRAWN = 14
"""So many effects are drawn; the table below has all."""
_TOLD = 3
"""So many interactions have a sentence."""
_LINES = (
    "Each line is the geometric mean, over all pairs of cells that differ in this alone, of their "
    "ratio within a block"
)
_EFFECTS = (
    Column("workload", "workload", "name"),
    Column("factor", "factor", "name"),
    Column("level", "this", "name"),
    Column("base", "against", "name"),
    Column("ratio", "× as fast", "ratio"),
    Column("interval", "interval", "interval"),
    Column("answer", "answer"),
    Column("pairs", "pairs of cells", "count"),
    Column("least", "least of a pair", "ratio"),
    Column("most", "most of a pair", "ratio"),
)
_INTERACTIONS = (
    Column("workload", "workload", "name"),
    Column("level", "this", "name"),
    Column("base", "against", "name"),
    Column("other_base", "with", "name"),
    Column("ratio_at_base", "× as fast", "ratio"),
    Column("other", "and with", "name"),
    Column("ratio_at_other", "× as fast", "ratio"),
    Column("changes", "changes by ×", "ratio"),
    Column("interval", "interval", "interval"),
    Column("groups", "groups of four cells", "count"),
)
_BEST = (
    Column("workload", "workload", "name"),
    Column("cell", "fastest cell", "name"),
    Column("rate", "rate", "number"),
    Column("rate_interval", "interval", "interval"),
    Column("unit", "unit"),
    Column("next", "next", "name"),
    Column("share", "of the fastest", "share"),
)


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    asked = [(one, results.effects[one.workload]) for one in results.rankings if _is(results, one)]
    if not asked:
        return
    several = len(results.rankings) > 1
    for number, (ranking, effects) in enumerate(asked, 1):
        inner = (*_effects(ranking, effects, number), *_maps(ranking, effects, number))
        if number == 1:
            yield Group(inner, ranking.workload if several else "")
        else:  # the first is drawn; of the others their largest effect stands there
            first = next(iter(sentences(effects)), "")
            yield Fold(ranking.workload, inner, detail=first, is_printed=True)
        where = f" ({ranking.workload})" if several else ""
        yield Brief(f"What matters{where}:", (*sentences(effects), *_changing(effects)))
    if several:
        yield Group((Sheet(_best(results)),), "The fastest cell of each workload")


def _is(results: Results, ranking: Ranking) -> bool:
    return ranking.workload in results.effects


def _effects(ranking: Ranking, effects: Effects, number: int) -> Iterator[Block]:
    shown = sorted(effects.every, key=_distance, reverse=True)[:_DRAWN]
    lines = tuple(
        Ratio(f"{one.level} against {one.base}", one.ratio, one.interval, one.answer)
        for one in shown
    )
    rows = tuple(_row(ranking, one) for one in effects.every)
    table = Table(
        f"effects-{number}", f"What each factor of {ranking.workload} does", _EFFECTS, rows
    )
    yield Chart(Ratios(lines), table, note=_how(effects))
    for told in _changing(effects):
        yield Note(told)
    if effects.interactions:
        yield Fold(
            "Where factors depend on each other",
            (Sheet(_interactions(ranking, effects, number)),),
            detail=f"{len(effects.interactions)} of {effects.tested} that were looked at",
        )


def _distance(one: Effect) -> float:
    return max(one.ratio, 1 / one.ratio)


def _how(effects: Effects) -> str:
    blocks = counted(effects.blocks, "block")
    said = [f"{_LINES}; {blocks}. The intervals hold together with {effects.level * 100:.3g} %."]
    if effects.unpaired:
        names = ", ".join(effects.unpaired[:_DRAWN])
        more = len(effects.unpaired) - _DRAWN
        names += f" and {more} more" if more > 0 else ""
        said.append(f"No two cells differ in this alone: {names}.")
    if effects.ambiguous:
        said.append(f"Left out: {counted(effects.ambiguous, 'cell')} that differ in options only.")
    return " ".join(said)


def _changing(effects: Effects) -> tuple[str, ...]:
    """Name the largest interactions, or say that there are none to be seen."""
    if effects.interactions:
        return tuple(interaction(one) for one in effects.interactions[:_TOLD])
    if effects.tested:
        return ("No factor is seen to change what another does.",)
    return ()


def _row(ranking: Ranking, one: Effect) -> tuple[object, ...]:
    return (
        ranking.workload,
        one.factor.replace("_", " "),
        one.level,
        one.base,
        one.ratio,
        one.interval,
        one.answer,
        one.pairs,
        one.least,
        one.most,
    )


def _interactions(ranking: Ranking, effects: Effects, number: int) -> Table:
    rows = tuple(
        (
            ranking.workload,
            one.level,
            one.base,
            one.other_base,
            one.ratio_at_base,
            one.other,
            one.ratio_at_other,
            one.ratio_at_other / one.ratio_at_base,
            one.interval,
            one.groups,
        )
        for one in effects.interactions
    )
    title = f"Where factors of {ranking.workload} depend on each other"
    return Table(f"interactions-{number}", title, _INTERACTIONS, rows)


def _maps(ranking: Ranking, effects: Effects, number: int) -> Iterator[Block]:
    """Draw the map of the two factors that matter most; those of others unfold."""
    charts = [
        _map(ranking, found, f"map-{number}-{at}")
        for at, found in enumerate(squares_of(ranking, effects), 1)
    ]
    if charts:
        yield charts[0]
    if charts[1:]:
        yield Fold(
            "The same over other factors", tuple(charts[1:]), detail=f"{len(charts) - 1} maps"
        )


def _map(ranking: Ranking, found: Squares, name: str) -> Chart:
    down, across = (one.replace("_", " ") for one in (found.down, found.across))
    title = f"The fastest cell for each {down} and {across}, {ranking.unit}"
    lines = tuple(
        tuple(
            _square(ranking, found.fastest.get((row, column)))
            for column in range(len(found.columns))
        )
        for row in range(len(found.rows))
    )
    columns = (
        Column("row", down, "name"),
        Column("column", across, "name"),
        Column("cell", "fastest cell", "name"),
        Column("rate", "rate", "number"),
        Column("interval", "interval", "interval"),
    )
    rows = []
    for (row, column), cell in sorted(found.fastest.items()):
        value, interval, _ = parts(cell.rate)
        rows.append((found.rows[row], found.columns[column], ranking.name(cell), value, interval))
    drawing = blocks.Squares(found.rows, found.columns, lines)
    return Chart(drawing, Table(name, title, columns, tuple(rows)), title)


def _square(ranking: Ranking, cell: CellResult | None) -> Square | None:
    if cell is None or cell.rate is None:
        return None
    value, interval = numbers.estimate(cell.rate)
    return Square(cell.rate.value, f"{ranking.name(cell)}: {value} {ranking.unit} {interval}")


def _best(results: Results) -> Table:
    rows = []
    for ranking in results.rankings:
        if not ranking.cells:
            continue
        first, *others = ranking.cells
        value, interval, _ = parts(first.rate)
        following = others[0] if others else None
        share = following.rate.value / value if following and following.rate and value else None
        rows.append(
            (
                ranking.workload,
                ranking.name(first),
                value,
                interval,
                ranking.unit,
                ranking.name(following) if following else None,
                share,
            )
        )
    return Table("best", "The fastest cell of each workload", _BEST, tuple(rows))


SECTION = Section("What matters", 40, _blocks)
