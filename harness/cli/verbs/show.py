"""The verb `show`: a run's answer and ranking in the terminal."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli import completion
from harness.cli.light_numpy import import_numpy
from harness.cli.output import emit_json, note, say

if TYPE_CHECKING:
    from harness.analysis.evidence import Evidence
    from harness.analysis.results import Results

_LEAST, _MOST = 60, 140


@click.command("show")
@click.argument("runs", metavar="RUN…", nargs=-1, required=True, shell_complete=completion.runs)
@click.option("--json", "as_json", is_flag=True, help="Print the same as JSON.")
@click.option("--cell", metavar="CELL", help="Take one cell's step apart: what holds it back.")
@click.option("--pairs", is_flag=True, help="Compare every pair of cells: takes 13 blocks.")
def command(runs: tuple[str, ...], *, as_json: bool, cell: str | None, pairs: bool) -> None:
    """Show a run's answer and ranking in the terminal, and what holds its cells back.

    RUN is a run directory, a name under runs/, or a folder of runs; several are shown side by side.
    CELL is a name as this prints it, words that only one cell's name has, or a cell's key.
    """
    import_numpy()
    from harness.analysis.read import run_directories
    from harness.sections.contract.read import read_with_limits
    from harness.store.layout import RunPaths
    from harness.store.run_directory import opening

    results, evidence = read_with_limits(run_directories(runs))
    for one in results.runs:
        if holder := opening.holder(RunPaths(Path(one.directory))):
            note(f"{one.directory}: at work on it: {holder}. What follows is not final.")
    if cell is not None:
        _show_cell(results, evidence, cell, as_json=as_json)
        return
    if as_json:
        from reports.exports.results_file import summary

        emit_json(summary(results, evidence))
        return
    if pairs:
        from reports.text.all_pairs import render as render_pairs

        say(render_pairs(results))
        return
    from reports.text.terminal import render

    say(render(results, _width(), evidence))


def _show_cell(results: Results, evidence: Evidence, name: str, *, as_json: bool) -> None:
    """Print one cell's step: what it is made of, and what holds it back."""
    from harness.analysis.explain.cells import cell_called
    from harness.analysis.limits.holding_back import limits
    from harness.errors import UsageError
    from reports.text import step_anatomy

    if len(results.runs) > 1:
        raise UsageError("--cell takes one run apart; name one.")
    found = cell_called(results, name)
    called = results.names[found.run, found.key]
    limit = limits(results, evidence).get(found.key)
    if limit is None:
        why = "only networks that are trained do"
        if found.macs is not None:
            why = "nothing divided it in this run, as where a study says measure.explain = false"
        raise UsageError(f"{called} has no step to take apart: {why}.")
    if as_json:
        emit_json(step_anatomy.as_json(limit, called))
    else:
        say(step_anatomy.render(limit, called, _width()))


def _width() -> int:
    return max(_LEAST, min(_MOST, shutil.get_terminal_size((100, 24)).columns))
