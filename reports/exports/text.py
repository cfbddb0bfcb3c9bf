"""Write tables as CSV, JSON and Markdown."""

from __future__ import annotations

import csv
import io

from harness.analysis.tables import Table, filled, flat, records, shown_row
from harness.store.json_text import json_text


def as_csv(table: Table) -> str:
    """Write raw values, one line per row; unknown is empty."""
    heads, rows = flat(table)
    written = io.StringIO()
    out = csv.writer(written)
    out.writerow(heads)
    out.writerows(rows)
    return written.getvalue()


def as_json(table: Table) -> str:
    """Write raw values, one object per row; unknown is null."""
    return json_text(records(table), indent=2) + "\n"


def _cell(text: str) -> str:
    """Keep a value inside its cell, and as text: Markdown renders HTML."""
    escaped = text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
    return " ".join(escaped.split())


def as_markdown(table: Table) -> str:
    """Write what a person would read, numbers to the right."""
    table = filled(table)
    heads = [_cell(column.title) for column in table.columns]
    rules = ["---" if c.kind in ("text", "name", "long", "path") else "---:" for c in table.columns]
    lines = [heads, rules, *([_cell(text) for text in shown_row(table, r)] for r in table.rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
