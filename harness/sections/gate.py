"""The section of the equivalence gate: do the cells compute the same?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from harness.analysis.evidence import Evidence
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.sections.contract.blocks import Block, Fold, Gist, Note, Sheet
from harness.sections.contract.section import Section
from harness.store.records import NO_NETWORK, NOT_CHECKED, NOT_RUN, NOTHING

_COLUMNS = (
    Column("workload", "workload", "name"),
    Column("cell", "cell", "name"),
    Column("machine", "machine", "name"),
    Column("gate", "equivalence"),
    Column("detail", "detail", "long"),
    Column("not_shown", "not shown", "long"),
)
_UNCHECKED = (NOT_CHECKED, NOTHING)
_PLAIN = ("", NOT_RUN, NO_NETWORK)
"""Reasons that are those of every cell."""
_MANY = 20
"""So many cells are counted by what was found, and listed in a fold."""


def gate(results: Results) -> Table:
    """Lay out whether the cells compute the same thing."""
    rows = tuple(
        (
            one.workload,
            one.name(cell),
            one.machine(cell),
            cell.gate.state,
            cell.gate.detail,
            "; ".join(cell.gate.not_shown) or None,
        )
        for one in results.rankings
        for cell in (*one.cells, *one.set_aside, *one.without)
    )
    return Table("gate", "Results of the equivalence gate", _COLUMNS, rows)


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    yield Note(
        "Each network's own lowering, built for this examination, against the reference: outputs, "
        "loss, gradients and updates in double precision where the framework has it, and each "
        "layer as it is timed. What the timed steps themselves did is known of the trials whose "
        "column “proof” says so."
    )
    table = gate(results)
    tells = any(
        cell.gate.state not in _UNCHECKED or cell.gate.detail not in _PLAIN
        for cell in results.cells
    )
    if not tells:
        yield Sheet(table, rows_on_page=())
    elif len(table.rows) < _MANY:
        yield Sheet(table)
    else:
        states = Counter(cell.gate.state for cell in results.cells)
        said = ", ".join(f"{count} {state}" for state, count in states.most_common())
        yield Gist(f"{said}, of {len(table.rows):,} cells")
        yield Note(f"Of {len(table.rows):,} cells: {said}.")
        yield Fold(f"All {len(table.rows):,} cells as a table", (Sheet(table),))


SECTION = Section("Do they compute the same?", 1300, _blocks, contents="Equivalence")
