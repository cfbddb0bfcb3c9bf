"""The section of a paper's statements beside what was measured, as its study's findings ask for."""

from __future__ import annotations

from collections.abc import Iterator

from harness.analysis.context.paper_findings import findings
from harness.analysis.evidence import Evidence
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.sections.contract.blocks import Block, Sheet
from harness.sections.contract.section import Section

_COLUMNS = (
    Column("question", "question", "long"),
    Column("paper", "the paper found", "long"),
    Column("measured", "you measured", "long"),
)


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    found = findings(results, evidence.questions or {})
    rows = tuple((one.question, one.paper, one.measured) for one in found)
    yield Sheet(Table("findings", "The paper's statements beside this study's", _COLUMNS, rows))


SECTION = Section(
    "What the paper found, what you measured",
    150,
    _blocks,
    contents="The paper",
    needs=frozenset({"questions"}),
)
