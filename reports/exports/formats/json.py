"""Write a table as JSON, and all results as results.json."""

from __future__ import annotations

from harness.analysis.results import Results
from harness.analysis.tables import Table, records
from harness.sections.contract.gather import gather_limits
from harness.store.json_text import json_text
from reports.exports.results_file import results_text


def of_table(table: Table) -> str:
    """Write raw values, one object per row; unknown is null."""
    return json_text(records(table), indent=2) + "\n"


def of_results(results: Results) -> str:
    """Write everything, as results.json holds it."""
    return results_text(results, gather_limits(results))
