"""The section of what differs between the cells, and between the machines."""

from __future__ import annotations

from collections.abc import Iterator

from harness.analysis.differences import between_cells, between_runs
from harness.analysis.evidence import Evidence
from harness.analysis.results import Results
from harness.sections.contract.blocks import Block, Gist, Group, Note, Sheet
from harness.sections.contract.section import Section
from harness.units import listed

_NAMED = 6


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    table = between_cells(results)
    yield Gist(listed([str(what) for what, *_ in table.rows], _NAMED))
    yield Note("Everything not listed here was the same for all cells.")
    yield Sheet(table)
    if len(results.runs) > 1 and evidence.comparison is None:  # a comparison says it itself
        yield Group((Sheet(between_runs(results)),), "Between the machines")


SECTION = Section("What differs", 300, _blocks)
