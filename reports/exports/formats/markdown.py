"""Write a table as Markdown."""

from __future__ import annotations

from harness.analysis.tables import Table, filled, shown_row
from reports.exports.plain_text import plain
from reports.figures.figures import PaperFigure


def _cell(text: str) -> str:
    """Keep a value inside its cell, and as text: Markdown renders HTML, and fetches pictures."""
    escaped = text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
    escaped = escaped.replace("[", "\\[")
    return plain(" ".join(escaped.split()))


def of_table(table: Table) -> str:
    """Write what a person would read, numbers to the right."""
    table = filled(table)
    heads = [_cell(column.title) for column in table.columns]
    rules = ["---" if c.kind in ("text", "name", "long", "path") else "---:" for c in table.columns]
    lines = [heads, rules, *([_cell(text) for text in shown_row(table, r)] for r in table.rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def of_captioned(
    table: Table, caption: str, width_mm: float | None, *, is_chosen: bool = True
) -> str:
    """Write a table with its caption below it, as wide as it is."""
    return f"{of_table(table)}\n*{_cell(caption)}*\n"


def of_figure(figure: PaperFigure, caption: str) -> str:
    """Write the place of a figure that lies beside the page as SVG."""
    return f"![{_cell(caption)}]({figure.name}.svg)\n"
