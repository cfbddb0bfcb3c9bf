"""The verb `export`: a run's tables, figures and traces in the formats that others read."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import click

import reports
from harness.cli import completion
from harness.cli.output import emit_data, note, say
from harness.errors import UsageError

_FORMATS = Path(reports.__file__).parent / "exports" / "formats"
_WIDTH = re.compile(r"(\d+(?:\.\d+)?)\s*(mm|cm|in)")
_MM = {"mm": 1.0, "cm": 10.0, "in": 25.4}
_NARROWEST_MM, _WIDEST_MM = 20.0, 1000.0
_PAGE_MM = 230.0
"""What a page has for a figure and its caption, A4's or a letter's."""
_CAPTION_MM = 25.0


def _names() -> list[str]:
    """Name the formats: one module each."""
    return sorted(path.stem for path in _FORMATS.glob("[!_]*.py"))


def _width(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    found = _WIDTH.fullmatch(value.strip())
    wide = float(found[1]) * _MM[found[2]] if found else 0.0
    if not _NARROWEST_MM <= wide <= _WIDEST_MM:
        raise click.BadParameter(f"'{value}' is no width: say 85mm, 17.5cm or 3.3in")
    return wide


@click.command("export")
@click.argument("runs", metavar="RUN…", nargs=-1, required=True, shell_complete=completion.runs)
@click.option("--to", "form", type=click.Choice(_names()), required=True, help="The format.")
@click.option(
    "--table",
    help="Any table of the page: ranking (default; of json all of results.json), cells, trials, "
    "scaling, input …; a wrong name lists them all.",
)
@click.option("--columns", help="Columns of the table, in this order: rate,rate_interval,ratio.")
@click.option(
    "--figure",
    help="Any chart of the page: ranking (default of svg, pdf and png), trials, scaling, timeline, "
    "of several timeline-3 …; a wrong name lists them all.",
)
@click.option(
    "--width",
    "width_mm",
    callback=_width,
    help="How wide a figure or a LaTeX table may be on paper: 85mm.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write (standard output otherwise).",
)
def command(
    runs: tuple[str, ...],
    *,
    form: str,
    table: str | None,
    columns: str | None,
    figure: str | None,
    width_mm: float | None,
    output: Path | None,
) -> None:
    """Write a run's tables, figures and traces for papers, programs and spreadsheets."""
    from harness.analysis.read import run_directories

    module = importlib.import_module(f"reports.exports.formats.{form}")
    keys = [key.strip() for key in columns.split(",")] if columns else []
    is_drawn = not hasattr(module, "of_table") and hasattr(module, "of_figure")
    _refuse(module, form, table=table, columns=columns, figure=figure, width_mm=width_mm)
    directories = run_directories(runs)
    if figure is not None or is_drawn:
        written = _figure(directories, module, figure or "ranking", width_mm)
    elif table is None and not keys and hasattr(module, "of_results"):
        from harness.analysis.context.absolute_paths import without_places
        from harness.analysis.read import read_results

        written = module.of_results(without_places(read_results(directories)))
    else:
        written = _table(directories, module, table or "ranking", keys, width_mm)
    if output is None and isinstance(written, bytes) and sys.stdout.isatty():
        raise UsageError(f"{form} is not text: name a file with --output, or redirect")
    if output is None:
        emit_data(written)
        return
    from harness.store.files import write_whole

    write_whole(output, written)
    say(str(output))


def _refuse(
    module: ModuleType,
    form: str,
    *,
    table: str | None,
    columns: str | None,
    figure: str | None,
    width_mm: float | None,
) -> None:
    """Refuse what a format has no use for, instead of leaving it out in silence."""
    has_table, has_figure = hasattr(module, "of_table"), hasattr(module, "of_figure")
    if (table or columns) and figure:
        raise UsageError("--table and --columns are of a table, --figure is a drawing: take one")
    if not has_table and (table or columns):
        shape = "a drawing: take --figure" if has_figure else "one shape: leave --table out"
        raise UsageError(f"{form} has {shape}")
    if figure and not has_figure:
        raise UsageError(f"{form} holds no figures; svg, pdf, png, latex and markdown do")
    if width_mm is not None and not has_figure:
        raise UsageError(f"{form} is no wider or narrower: leave --width out")


def _figure(
    directories: Sequence[Path], module: ModuleType, name: str, width_mm: float | None
) -> str | bytes:
    from harness.analysis.tables import family
    from harness.sections.contract.read import read_page
    from reports.figures.captions import caption
    from reports.figures.figures import figure, span

    results, evidence = read_page(directories)
    drawn = figure(results, evidence, name, width_mm)
    if drawn.height_mm > _PAGE_MM:
        remedy = f"--table {drawn.parts[0]} has the same in numbers"
        if drawn.parts[1:]:
            remedy = f"--figure takes each by itself: {span(drawn.parts)}"
        note(f"Warning: this figure is {drawn.height_mm:.0f} mm tall, no page is; {remedy}.")
    written: str | bytes
    if hasattr(module, "of_table"):  # where a figure has a place in text
        told = caption(results, drawn.title, has_ratios=family(drawn.name) == "ranking")
        written = module.of_figure(drawn, told)
    else:
        written = module.of_figure(drawn)
    return written


def _table(
    directories: Sequence[Path],
    module: ModuleType,
    name: str,
    keys: Sequence[str],
    width_mm: float | None,
) -> str | bytes:
    from harness.analysis.tables import selected
    from harness.sections.contract.read import read_table

    is_of_paper = hasattr(module, "of_captioned")
    table = read_table(directories, name, may_be_empty=not is_of_paper)
    written: str | bytes
    if is_of_paper:
        from harness.analysis.read import read_results
        from reports.exports.paper_tables import for_paper
        from reports.figures.captions import caption

        chosen, same = for_paper(table, keys)
        has_ratios = any(column.key == "ratio" for column in chosen.columns)
        told = caption(read_results(directories), table.title, *same, has_ratios=has_ratios)
        written = module.of_captioned(chosen, told, width_mm, is_chosen=bool(keys))
        if hasattr(module, "height_mm"):
            _warn_of_height(module.height_mm(chosen, width_mm, is_chosen=bool(keys)))
    else:
        written = module.of_table(selected(table, keys) if keys else table)
    return written


def _warn_of_height(tall_mm: float) -> None:
    if tall_mm > _PAGE_MM - _CAPTION_MM:
        note(
            f"Warning: this table is about {tall_mm:.0f} mm tall, no page is. Each row is a line "
            "of what was written: delete those that the paper does not need."
        )
