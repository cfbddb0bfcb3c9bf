"""The verb `export`: a run's tables and traces in the formats that other programs read."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

import click

import reports
from harness.cli import completion
from harness.cli.output import emit_data, say
from harness.errors import UsageError

_FORMATS = Path(reports.__file__).parent / "exports" / "formats"


def _names() -> list[str]:
    """Name the formats: one module each."""
    return sorted(path.stem for path in _FORMATS.glob("[!_]*.py"))


def _written(directories: Sequence[Path], form: str, name: str | None) -> str | bytes:
    from harness.analysis.read import read_results

    module = importlib.import_module(f"reports.exports.formats.{form}")
    written: str | bytes
    if name is None and hasattr(module, "of_results"):
        written = module.of_results(read_results(directories))
    elif hasattr(module, "of_table"):
        from harness.sections.contract.read import read_table

        written = module.of_table(read_table(directories, name or "ranking"))
    else:
        raise UsageError(f"{form} has one shape: leave --table out")
    return written


@click.command("export")
@click.argument("runs", metavar="RUN…", nargs=-1, required=True, shell_complete=completion.runs)
@click.option("--to", "form", type=click.Choice(_names()), required=True, help="The format.")
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
    """Write a run's tables as CSV, JSON, Parquet, LaTeX, Markdown or JUnit, or as a trace."""
    from harness.analysis.read import run_directories

    written = _written(run_directories(runs), form, name)
    if output is None and isinstance(written, bytes) and sys.stdout.isatty():
        raise UsageError(f"{form} is not text: name a file with --output, or redirect")
    if output is None:
        emit_data(written)
        return
    from harness.store.files import write_whole

    write_whole(output, written)
    say(str(output))
