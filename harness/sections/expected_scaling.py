"""The section of scaling beside what was to be expected of it, and what fewer devices predict."""

from __future__ import annotations

from collections.abc import Iterator

from harness.analysis.evidence import Evidence
from harness.analysis.results import Results
from harness.analysis.scaling.expected import expected
from harness.analysis.tables import Table
from harness.sections.contract.blocks import Block, Gist, Note, Sheet
from harness.sections.contract.section import Section
from harness.units import counted

_LEAST = (
    "Expected, if nothing hides: one device's step and, after it, one all-reduce of all gradients, "
    "as long as the all-reduces of the bare network in this run let it take; nothing of it is "
    "fitted to these steps. What is measured above it hides behind computing; what is measured "
    "below it is lost elsewhere."
)
_PREDICTED = (
    "Predicted from fewer devices: the growth fitted to the smaller counts, with the largest left "
    "out."
)


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    table = expected(results)
    yield Gist(counted(len(table.rows), "measured point") + " beside what was expected")
    yield Note(_meaning(table))
    yield Sheet(table)


def _meaning(table: Table) -> str:
    """Say what the columns mean that have anything in them."""
    known = {
        column.key
        for index, column in enumerate(table.columns)
        if any(row[index] is not None for row in table.rows)
    }
    columns = (("least", _LEAST), ("predicted", _PREDICTED))
    return " ".join(text for key, text in columns if key in known)


SECTION = Section("Predicted and measured efficiency", 500, _blocks, contents="Predicted")
