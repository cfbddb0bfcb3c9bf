"""The section of cells that gave no number: how many of which kind, where, and one example each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.analysis.context.failures import Failure, by_kind, by_level, failures, in_common
from harness.analysis.evidence import Evidence
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.sections.contract.blocks import Block, Brief, Fold, Note, Sheet
from harness.sections.contract.columns import place
from harness.sections.contract.section import Section
from harness.units import counted

_FEW = 3
"""So many failures are listed; how they lie over factors is asked of more."""
_KINDS = 3
"""Before the counts of a row stand its factor, its value and how many cells have that."""
_LISTED = (
    Column("workload", "workload", "name"),
    Column("cell", "cell", "name"),
    Column("kind", "how it ended"),
    Column("why", "why", "long"),
    Column("directory", "raw data", "path"),
)
_EXAMPLES = (
    Column("kind", "how they ended", "name"),
    Column("cells", "cells", "count"),
    Column("cell", "for example", "name"),
    Column("why", "why", "long"),
    Column("directory", "raw data", "path"),
)


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    found = failures(results)
    kinds = by_kind(found)
    said = _in_words(results, kinds)
    listed = Table("failures", "Cells without a number", _LISTED, tuple(map(_row, found)))
    if len(found) <= _FEW:
        yield Sheet(listed)
    else:
        yield Note(f"{said} Listed are the values at which cells gave no number.")
        matrix = _matrix(results, found, tuple(kinds))
        yield Sheet(matrix, rows_on_page=tuple(row for row in matrix.rows if any(row[_KINDS:])))
        examples = tuple(_example(kind, some) for kind, some in kinds.items())
        yield Sheet(Table("failure-examples", "One of each kind", _EXAMPLES, examples))
        yield Fold(f"All {counted(len(found), 'cell')}", (Sheet(listed),))
    if found:
        yield Brief("What failed:", (said,))


def _in_words(results: Results, kinds: dict[str, list[Failure]]) -> str:
    told = []
    for kind, some in kinds.items():
        where = in_common(results, some)
        told.append(f"{len(some)} {kind}{f' ({where})' if where else ''}")
    return f"Of {counted(len(results.cells), 'cell')}, {', '.join(told)}."


def _matrix(results: Results, found: Sequence[Failure], kinds: Sequence[str]) -> Table:
    columns = (
        Column("factor", "factor", "name"),
        Column("level", "value", "name"),
        Column("cells", "cells", "count"),
        *(Column(f"kind_{at}", kind, "count") for at, kind in enumerate(kinds, 1)),
    )
    rows = tuple(
        (factor, level, cells, *(counts.get(kind, 0) for kind in kinds))
        for factor, level, cells, counts in by_level(results, found)
    )
    return Table("failure-matrix", "Cells without a number, by factor", columns, rows)


def _row(one: Failure) -> tuple[object, ...]:
    name = one.ranking.name(one.cell)
    return (one.ranking.workload, name, one.kind, one.why, place(one.cell))


def _example(kind: str, some: Sequence[Failure]) -> tuple[object, ...]:
    _, name, _, why, where = _row(some[0])
    return (kind, len(some), name, why, where)


SECTION = Section("What failed", 110, _blocks)
