"""The section of what differs between the cells, and between the machines."""

from __future__ import annotations

from collections.abc import Iterator

from harness.analysis.differences import between_cells, between_runs
from harness.analysis.evidence import Evidence
from harness.analysis.results import Results
from harness.sections.contract.blocks import Block, Group, Note, Sheet
from harness.sections.contract.section import Section


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    yield Note("Everything not listed here was the same for all cells.")
    yield Sheet(between_cells(results))
    if len(results.runs) > 1 and evidence.comparison is None:  # a comparison says it itself
        yield Group((Sheet(between_runs(results)),), "Between the machines")


SECTION = Section("What differs", 300, _blocks)
