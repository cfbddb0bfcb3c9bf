"""Write a table as CSV."""

from __future__ import annotations

import csv
import io

from harness.analysis.tables import Table, flat


def of_table(table: Table) -> str:
    """Write raw values, one line per row; unknown is empty."""
    heads, rows = flat(table)
    written = io.StringIO()
    out = csv.writer(written)
    out.writerow(heads)
    out.writerows(rows)
    return written.getvalue()
