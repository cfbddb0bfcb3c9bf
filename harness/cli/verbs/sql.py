"""The verb `sql`: any question to a run's raw tables."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from harness.store.dataset import Table


@click.command("sql")
@click.argument("arguments", metavar="RUN… QUERY", nargs=-1, required=True)
@click.option("--json", "form", flag_value="json", help="Print a list of JSON objects.")
@click.option("--csv", "form", flag_value="csv", help="Print comma-separated values.")
@click.option(
    "--origin",
    "origins",
    multiple=True,
    type=click.Choice(("measured", "simulated", "stand-in", "replayed")),
    help="Take trials of this origin; by default measured ones, of simulated runs the simulated.",
)
def command(arguments: tuple[str, ...], *, form: str | None, origins: tuple[str, ...]) -> None:
    """Answer one SELECT over the raw tables of one or many runs; nothing is ever changed.

    The tables: runs, cells, trials, ranks, windows, units, values, phases, facts, versions. For
    example: bakeoff sql RUN "select framework, count(*) from cells group by all"
    """
    *runs, query = arguments
    if not runs:
        raise click.UsageError('name a run and a query: bakeoff sql RUN "select …"')
    from harness.sections.read import run_directories
    from harness.store.dataset import Dataset

    dataset = Dataset(run_directories(runs), origins)
    for warning in dataset.warnings:
        click.echo(f"Warning: {warning}", err=True)
    answer = dataset.sql(query)
    if form == "json":
        rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
        click.echo(json.dumps(rows, indent=1, ensure_ascii=False, default=str))
    elif form == "csv":
        click.echo(_csv(answer), nl=False)
    else:
        click.echo(_aligned(answer), nl=False)


def _csv(answer: Table) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows(answer.rows)
    return file.getvalue()


def _aligned(answer: Table) -> str:
    """Write plain columns, numbers to the right."""
    rows = [[_text(value) for value in row] for row in answer.rows]
    widths = [
        max(len(name), *(len(row[index]) for row in rows)) if rows else len(name)
        for index, name in enumerate(answer.columns)
    ]
    right = [
        bool(answer.rows) and all(isinstance(row[index], int | float) for row in answer.rows)
        for index in range(len(widths))
    ]
    lines = []
    for row in (list(answer.columns), *rows):
        cells = [
            text.rjust(width) if number else text.ljust(width)
            for text, width, number in zip(row, widths, right, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    lines.append(f"({len(rows)} row{'' if len(rows) == 1 else 's'})")
    return "\n".join(lines) + "\n"


def _text(value: Any) -> str:
    return "–" if value is None else str(value)
