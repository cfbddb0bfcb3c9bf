"""The section of what was asked for and left out, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from harness.analysis.evidence import Evidence
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.sections.contract.blocks import Block, Gist, Sheet
from harness.sections.contract.section import Section
from harness.units import counted

_COLUMNS = (Column("cell", "cell", "name"), Column("why", "why", "long"))


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    rows = tuple((hole.label, hole.why) for hole in results.holes)
    why = Counter(hole.why for hole in results.holes)
    for reason, count in why.most_common(1):
        of = f"{count} of " if count < len(rows) else ""
        yield Gist(f"{of}{counted(len(rows), 'cell')}: {reason}")
    yield Sheet(Table("holes", "Cells that were asked for and not run", _COLUMNS, rows))


SECTION = Section("Left out, and why", 1500, _blocks, contents="Left out")
