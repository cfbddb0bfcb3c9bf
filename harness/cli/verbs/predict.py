"""The verb `predict`: what more nodes than were measured would reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from harness.cli import completion
from harness.cli.output import emit, note
from harness.errors import RunError


@dataclass(frozen=True)
class LineWarnings:
    """What to keep in mind of one line of scaling."""

    workload: str
    cell: str
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Predicted:
    """What more nodes would reach."""

    fitted_to: tuple[str, ...]
    """Where what it is fitted to comes from: measured, simulated …"""
    rows: tuple[Mapping[str, Any], ...]
    """One for each line and number of nodes."""
    warnings: tuple[LineWarnings, ...]
    origin: str = "predicted"
    version: int = 1


@click.command("predict")
@click.argument("run", metavar="RUN", shell_complete=completion.runs)
@click.option(
    "--nodes",
    type=click.IntRange(min=1),
    multiple=True,
    required=True,
    help="How many nodes; repeat it for several counts.",
)
@click.option(
    "--draw",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw it too, as SVG.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the same as JSON.")
def command(run: str, *, nodes: tuple[int, ...], draw: Path | None, as_json: bool) -> None:
    """Predict what more nodes than were measured would reach.

    RUN needs cells that differ in the number of devices only: three to predict, four to check.
    An all-reduce sweep in the same run says what the network does.
    """
    from harness.analysis.read import read_results, run_directories
    from harness.analysis.scaling.prediction import forecasts, render, table
    from harness.analysis.tables import records

    found = forecasts(read_results(run_directories([run])), nodes)
    if not found:
        raise RunError(
            f"{run}: no two cells differ in the number of devices only, so nothing can be "
            "predicted. A study with nodes = [1, 2, 4, 8] has such cells."
        )
    if draw is not None:
        from harness.store.files import write_whole
        from reports.figures.forecast import drawing

        write_whole(draw, drawing(found))
        note(f"Drawn: {draw}")
    predicted = Predicted(
        fitted_to=tuple(sorted({one.origin for one in found})),
        rows=tuple(records(table(found))),
        warnings=tuple(LineWarnings(o.line.workload, o.line.name, o.warnings) for o in found),
    )
    emit(predicted, lambda: render(found), as_json=as_json)
