"""Read runs with what their sections need, for a page or for one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.analysis.analyse import analyse
from harness.analysis.context.absolute_paths import without_places
from harness.analysis.evidence import Evidence
from harness.analysis.results import Results
from harness.analysis.tables import Table, with_column
from harness.sections.contract.gather import gather, gather_limits
from harness.sections.contract.section import needs, refuse_table, sections, table
from harness.store.dataset import Dataset


def read_page(directories: Sequence[Path]) -> tuple[Results, Evidence]:
    """Read runs with everything that sections show beside the results, as it may travel."""
    dataset = Dataset(directories)
    results = analyse(dataset)
    evidence = without_places(gather(dataset, results, needs()))
    warnings = (*results.warnings, *evidence.damaged)
    return without_places(replace(results, warnings=warnings)), evidence


def read_with_limits(directories: Sequence[Path]) -> tuple[Results, Evidence]:
    """Read runs with what says what holds their cells back, which is read quickly."""
    results = analyse(Dataset(directories))
    evidence = gather_limits(results)
    return replace(results, warnings=(*results.warnings, *evidence.damaged)), evidence


def read_table(directories: Sequence[Path], name: str, *, may_be_empty: bool = True) -> Table:
    """Read one table of the sections; what takes long is gathered only where it alone has it."""
    dataset = Dataset(directories)
    results = analyse(dataset)
    found = table(sections(results), name)
    if found is None or not (found.rows or may_be_empty):
        every = sections(results, gather(dataset, results, needs()))
        found = table(every, name)
        if found is None or not (found.rows or may_be_empty):
            raise refuse_table(every, name)
    found = replace(found, rows=without_places(found.rows))
    return with_column(found, "origin", "simulated") if results.is_simulated else found
