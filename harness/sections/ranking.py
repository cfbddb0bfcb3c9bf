"""The table of the rankings, for exports; the page and the terminal draw them at the top."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.analysis.evidence import Evidence
from harness.analysis.ranking import Ranking
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.sections.contract.blocks import Block, Sheet
from harness.sections.contract.columns import RATE_COLUMNS, parts
from harness.sections.contract.section import RANKINGS, Section

_COLUMNS = (
    Column("workload", "workload", "name"),
    Column("place", "place", "count"),
    Column("cell", "cell", "name"),
    Column("machine", "machine", "name"),
    *RATE_COLUMNS,
    Column("gate", "equivalence"),
)


def ranking(results: Results) -> Table:
    """Lay out the order per workload."""
    rows = tuple(row for ranked in results.rankings for row in _rows(ranked))
    return Table("ranking", "Ranking", _COLUMNS, rows)


def _rows(ranking: Ranking) -> Iterator[tuple[Any, ...]]:
    for position, cell in enumerate(ranking.cells, 1):
        value, interval, n = parts(cell.rate)
        comparison = cell.comparison
        yield (
            ranking.workload,
            position,
            ranking.name(cell),
            ranking.machine(cell),
            value,
            interval,
            ranking.unit,
            n,
            comparison.ratio if comparison else None,
            comparison.interval if comparison else None,
            comparison.answer if comparison else None,
            cell.gate.state,
        )


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    yield Sheet(ranking(results), rows_on_page=())


SECTION = Section("Ranking", RANKINGS, _blocks)
