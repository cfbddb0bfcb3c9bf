"""The verb `explain`: why one cell of a run is slower than another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from harness.cli import completion
from harness.cli.light_numpy import import_numpy
from harness.cli.output import emit, note

if TYPE_CHECKING:
    from harness.analysis.results import Results
    from harness.verdicts.results import CellResult


@click.command("explain")
@click.argument("run", metavar="RUN", shell_complete=completion.runs)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("--json", "as_json", is_flag=True, help="Print the same as JSON.")
def command(run: str, first: str, second: str, *, as_json: bool) -> int:
    """Say why one of two cells takes longer for a step: which layers, in which pass, and what else.

    A and B are names as `bakeoff show` prints them, words that only one cell's name has, or keys of
    cells; where words fit several, the two are taken that differ least. Cells that the gate did not
    find to compute the same are refused; of cells whose rates cannot be told apart there is nothing
    to explain.
    """
    import_numpy()
    from harness.analysis.analyse import analyse
    from harness.analysis.explain.cells import explained, pair_called
    from harness.analysis.read import run_directory
    from harness.sections.contract.gather import gather_limits
    from harness.store.dataset import Dataset
    from reports.text import explanation

    dataset = Dataset([run_directory(run)])
    results = analyse(dataset)
    pair = pair_called(results, first, second)
    evidence = gather_limits(results)
    for problem in evidence.damaged:
        note(problem)
    found = explained(results, evidence, *pair)
    names = [_name(results, cell) for cell in (found.first, found.second)]
    emit(
        explanation.as_json(found, *names),
        lambda: explanation.render(found, *names),
        as_json=as_json,
    )
    return 1 if found.is_refused else 0


def _name(results: Results, cell: CellResult) -> str:
    return results.names[cell.run, cell.key]
