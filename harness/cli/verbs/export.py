"""The verb `export`: a run's tables in the formats that other programs read."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from harness.cli import completion
from harness.cli.output import emit_data, say
from harness.errors import UsageError

_FORMATS = ("csv", "json", "parquet", "latex", "markdown", "junit")


def _written(directories: Sequence[Path], form: str, name: str | None) -> str | bytes:
    from harness.analysis.read import read_results

    if form == "junit":
        from reports.exports.junit import as_junit

        if name is not None:
            raise UsageError("junit has one shape: leave --table out")
        return as_junit(read_results(directories))
    if form == "json" and name is None:
        from reports.exports.results_file import results_text

        return results_text(read_results(directories))
    from harness.sections.contract.read import read_table

    chosen = read_table(directories, name or "ranking")
    if form == "parquet":
        from reports.exports.parquet import as_parquet

        return as_parquet(chosen)
    if form == "latex":
        from reports.exports.latex import as_latex

        return as_latex(chosen)
    from reports.exports import text

    if form == "csv":
        return text.as_csv(chosen)
    return text.as_json(chosen) if form == "json" else text.as_markdown(chosen)


@click.command("export")
@click.argument("runs", metavar="RUN…", nargs=-1, required=True, shell_complete=completion.runs)
@click.option("--to", "form", type=click.Choice(_FORMATS), required=True, help="The format.")
@click.option(
    "--table",
    "name",
    help="Any table of the page: ranking (default; of json all of results.json), cells, trials, "
    "scaling, input …; a wrong name lists them all.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write (standard output otherwise).",
)
def command(runs: tuple[str, ...], *, form: str, name: str | None, output: Path | None) -> None:
    """Write a run's tables as CSV, JSON, Parquet, LaTeX, Markdown or JUnit."""
    from harness.analysis.read import run_directories

    if form == "parquet" and output is None and sys.stdout.isatty():
        raise UsageError("parquet is not text: name a file with --output, or redirect")
    written = _written(run_directories(runs), form, name)
    if output is None:
        emit_data(written)
        return
    from harness.store.files import write_whole

    write_whole(output, written)
    say(str(output))
