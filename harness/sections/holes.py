"""The section of what was asked for and left out, and why."""

from __future__ import annotations

from collections.abc import Iterator

from harness.analysis.evidence import Evidence
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.sections.contract.blocks import Block, Sheet
from harness.sections.contract.section import Section

_COLUMNS = (Column("cell", "cell", "name"), Column("why", "why", "long"))


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    rows = tuple((hole.label, hole.why) for hole in results.holes)
    yield Sheet(Table("holes", "Cells that were asked for and not run", _COLUMNS, rows))


SECTION = Section("Left out, and why", 1500, _blocks, contents="Left out")
