"""The verb `report`: the HTML page of one or more runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from harness.cli import completion
from harness.cli.light_numpy import import_numpy
from harness.cli.output import emit, note


@dataclass(frozen=True)
class Page:
    """Where a page and its data are."""

    report: Path
    results: Path | None
    """None where the page went into a pipe."""


@click.command("report")
@click.argument("runs", metavar="RUN…", nargs=-1, required=True, shell_complete=completion.runs)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the page (one run: report.html in it; several: report.html here).",
)
@click.option(
    "--compare",
    "compare_them",
    is_flag=True,
    help="Of exactly two runs: how the second differs from the first, cell by cell.",
)
@click.option("--open", "open_it", is_flag=True, help="Open the page in a browser.")
@click.option("--json", "as_json", is_flag=True, help="Print where the page is, as JSON.")
def command(
    runs: tuple[str, ...], *, output: Path | None, compare_them: bool, open_it: bool, as_json: bool
) -> None:
    """Write the HTML page of one or more runs.

    RUN is a run directory, a name under runs/, or a folder of runs; several machines are put side
    by side. The page is one file: it opens from disk, prints, and can be mailed.
    """
    import_numpy()
    from harness.analysis.read import read_comparison, run_directories
    from harness.errors import RunError, UsageError
    from harness.store.layout import RunPaths
    from reports.page.files import write_page

    directories = run_directories(runs)
    if compare_them and len(directories) != 2:
        raise UsageError(f"--compare takes exactly two runs; {len(directories)} are named")
    place = output or (
        RunPaths(directories[0]).report if len(directories) == 1 else Path("report.html")
    )
    comparison = read_comparison(directories[0], directories[1]) if compare_them else None
    try:
        written = write_page(directories, place, comparison=comparison)
    except RunError as problem:
        if output is not None or not isinstance(problem.__cause__, OSError):
            raise
        raise RunError(f"{problem}\n`--output page.html` writes it to another place.") from None
    page = Page(place.resolve(), written.data and written.data.resolve())
    if written.data is None and not as_json:
        note(str(place))  # what the pipe takes is the page alone
    else:
        emit(page, lambda: str(place), as_json=as_json)
    if open_it:
        import webbrowser

        webbrowser.open(place.resolve().as_uri())
