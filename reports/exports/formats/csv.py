"""Write a table as CSV.

A spreadsheet takes a cell that begins with = + - @ for a formula, which may start a program or send
what other cells hold. Names and messages come from files that others wrote, so such a text begins
with an apostrophe, which spreadsheets show as text; numbers stay as they are.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from harness.analysis.tables import Table, flat
from reports.exports.plain_text import plain

_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")  # some take the wide letters, too


def of_table(table: Table) -> str:
    """Write raw values, one line per row; unknown is empty."""
    heads, rows = flat(table)
    return of_rows(heads, rows, line_end="\r\n")


def of_rows(heads: Sequence[str], rows: Iterable[Sequence[Any]], *, line_end: str = "\n") -> str:
    """Write rows under their heads."""
    written = io.StringIO()
    out = csv.writer(written, lineterminator=line_end)
    out.writerow(map(_defused, heads))
    out.writerows(map(_defused, row) for row in rows)
    return written.getvalue()


def _defused(cell: Any) -> Any:
    if not isinstance(cell, str | list | tuple | dict):
        return cell
    text = plain(str(cell))
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
