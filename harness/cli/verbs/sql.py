"""The verb `sql`: any question to a run's raw tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from harness.analysis.numbers import UNKNOWN
from harness.cli.output import Part, Table, emit, emit_data, note
from harness.units import counted

if TYPE_CHECKING:
    from harness.store.sql.queries import QueryResult as Result

_ASKS_FOR_RATES = re.compile(r"\b(cells|trials)\b", re.IGNORECASE)
"""Other tables are answered without computing any."""


_LEAST_SHORT, _MOST_SHORT = 1e-4, 1e5
"""Between these six digits are written without an exponent."""


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

    The tables: runs, cells, trials, ranks, windows, epochs, checkpoints, turns, units, values,
    phases, facts, versions, samples. Cells have their rate, interval, ratio and answer, and trials
    their rate and how busy cores, GPUs and disks were.
    For example: bakeoff sql RUN "select label, rate, rate_low, rate_high, answer from cells"

    A query reads these tables only: no other file, no network, no extension; it writes nothing.
    """
    *runs, query = arguments
    if not runs:
        raise click.UsageError('name a run and a query: bakeoff sql RUN "select …"')
    from harness.analysis.read import run_directories
    from harness.store.dataset import Dataset

    dataset = Dataset(run_directories(runs), origins)
    if _ASKS_FOR_RATES.search(query):
        from harness.analysis.rates_for_queries import add_rates

        add_rates(dataset)
    for warning in (*dataset.warnings, *dataset.damaged_lines(query)):
        note(f"Warning: {warning}")
    answer = dataset.sql(query)
    if form == "csv":
        from reports.exports.formats.csv import of_rows

        emit_data(of_rows(answer.columns, answer.rows))
        return
    rows = [
        {name: _plain(value) for name, value in zip(answer.columns, row, strict=True)}
        for row in answer.rows
    ]
    emit(rows, lambda: _in_columns(answer), as_json=form == "json")


def _plain(value: Any) -> Any:
    """Give what JSON can hold; moments, decimals and the like are their text."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    return str(value)


def _in_columns(answer: Result) -> list[Part]:
    """Write plain columns, numbers to the right, and how many rows there are."""
    rows = [[_text(value) for value in row] for row in answer.rows]
    numbers = frozenset(
        index
        for index in range(len(answer.columns))
        if answer.rows and all(isinstance(row[index], int | float) for row in answer.rows)
    )
    return [Table(rows, answer.columns, numbers), f"({counted(len(rows), 'row')})"]


def _text(value: Any) -> str:
    """Write a value for people; ``--csv`` and ``--json`` have every digit."""
    if value is None:
        return UNKNOWN
    if isinstance(value, float) and _LEAST_SHORT <= abs(value) < _MOST_SHORT:
        return f"{value:.6g}"
    return str(value)
