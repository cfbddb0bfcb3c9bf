"""The verb `show`: a run's answer and ranking in the terminal."""

from __future__ import annotations

import shutil

import click

from harness.cli import completion
from harness.cli.light_numpy import import_numpy
from harness.cli.output import emit_json, say

_LEAST, _MOST = 60, 140


@click.command("show")
@click.argument("runs", metavar="RUN…", nargs=-1, required=True, shell_complete=completion.runs)
@click.option("--json", "as_json", is_flag=True, help="Print the same as JSON.")
@click.option("--pairs", is_flag=True, help="Compare every pair of cells: takes 13 blocks.")
def command(runs: tuple[str, ...], *, as_json: bool, pairs: bool) -> None:
    """Show a run's answer and ranking in the terminal.

    RUN is a run directory, a name under runs/, or a folder of runs; several are shown side by side.
    """
    import_numpy()
    from harness.analysis.read import read_results, run_directories

    results = read_results(run_directories(runs))
    if as_json:
        from reports.exports.results_file import summary

        emit_json(summary(results))
        return
    if pairs:
        from reports.text.all_pairs import render as render_pairs

        say(render_pairs(results))
        return
    from reports.text.terminal import render

    width = shutil.get_terminal_size((100, 24)).columns
    say(render(results, max(_LEAST, min(_MOST, width))))
