"""The section of a paper's statements beside what was measured, as its study's findings ask for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import compress

from harness.analysis.evidence import Evidence
from harness.analysis.papers.paper_findings import findings
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.sections.contract.blocks import Block, Fold, Sheet
from harness.sections.contract.section import Section
from harness.units import counted

_COLUMNS = (
    Column("question", "question", "long"),
    Column("paper", "the paper found", "long"),
    Column("measured", "you measured", "long"),
)


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    found = findings(results, evidence.questions or {})
    rows = [(one.question, one.paper, one.measured) for one in found]
    has_number = [one.answer.value is not None and not one.is_impossible for one in found]
    told = tuple(compress(rows, has_number))
    rest = tuple(row for row, is_told in zip(rows, has_number, strict=True) if not is_told)
    table = Table("findings", "The paper's statements beside this study's", _COLUMNS, tuple(rows))
    # A part of a study answers few of its paper's questions: those stand first, the rest is folded.
    yield Sheet(table, rows_on_page=told)
    title = f"{counted(len(rest), 'question')} that this run has no number for"
    without = replace(table, name="findings-without-number", rows=rest)
    yield Fold(title, (Sheet(without),), is_printed=True)


SECTION = Section(
    "What the paper found, what you measured",
    150,
    _blocks,
    contents="The paper",
    needs=frozenset({"questions"}),
)
