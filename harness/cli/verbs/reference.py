"""The verb `reference`: figures to hold results against, published and one's own."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.analysis.numbers import UNKNOWN
from harness.cli.output import emit
from harness.errors import RunError, UsageError
from harness.units import counted

if TYPE_CHECKING:
    from harness.analysis.context.published_figures import Figure


@click.group("reference")
def command() -> None:
    """List figures that others published, and keep those of one's own runs in the same format."""


@command.command("list")
@click.argument("words", metavar="[WORD]…", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print the same as JSON.")
def list_(words: tuple[str, ...], *, as_json: bool) -> None:
    """List all figures that contain every WORD; † is derived, a dash is not stated.

    A rate is that of all devices together, unless its unit says otherwise.
    """
    from harness.analysis.context.published_figures import own, published

    shown = []
    for figure in (*own(), *published()):
        values = (str(value) for value in asdict(figure).values())
        text = " ".join((*values, _line(figure))).lower()
        if all(word.lower() in text for word in words):
            shown.append(figure)
    if not shown:
        raise UsageError(f"no figure contains {' and '.join(words)}")
    emit(shown, lambda: [_line(one) for one in shown], as_json=as_json)


def _line(one: Figure) -> str:
    from harness.analysis.context.published_figures import HOW, how

    stated = {name: getattr(one, name) for name in HOW}
    computed = [how(name, value) for name, value in stated.items() if value is not None]
    mark = " †" if one.kind == "derived" else ""
    parts = (
        f"{one.machine} × {one.devices}",
        f"{one.framework or UNKNOWN} {one.framework_version or ''}".strip(),
        one.workload or f"{one.model} ({one.variant or 'variant not stated'})",
        *([f"sequence {one.sequence}"] if one.sequence else []),
        f"batch {one.batch or one.global_batch or UNKNOWN}",
        one.precision or UNKNOWN,
        *([] if one.compile is not None else [f"compile {UNKNOWN}"]),
        *computed,
        f"{one.value:.10g} {one.unit}{mark}",
        *([one.note] if one.note else []),
        one.source,
    )
    return " | ".join(parts)


@dataclass(frozen=True)
class StoredFigures:
    """Where a run's figures are kept now, and how many they are."""

    file: Path
    figures: int


@command.command("add")
@click.argument("run", metavar="RUN")
@click.option("--name", help="Name of the file; the run's own unless given.")
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("references"),
    show_default=True,
    help="Where figures are kept.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was kept as JSON.")
def add(run: str, *, name: str | None, folder: Path, as_json: bool) -> None:
    """Keep a run's figures, so that later runs are held against them too."""
    from harness.analysis.analyse import estimate_cells
    from harness.analysis.context.closest_figure import OWN, from_cells
    from harness.analysis.context.published_figures import parse
    from harness.analysis.read import run_directories
    from harness.store.dataset import Dataset
    from harness.store.files import write_whole
    from harness.worker.redaction.redact import redact_values

    found = run_directories([run])
    if len(found) != 1:
        raise UsageError(f"{run} holds {len(found)} runs; name one")
    dataset = Dataset(found)
    info = redact_values(dataset.runs[0].info)
    cells = redact_values(estimate_cells(dataset)[info.name])
    text = from_cells(cells, info, f"{OWN}{info.name}")
    stored = parse(text, info.name)
    if not stored:
        raise RunError(f"{run}: no cell has a figure to keep")
    file = folder / f"{name or info.name}.toml"
    if file.exists():
        raise UsageError(f"{file} is there already; choose another --name")
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(file, text)
    emit(
        StoredFigures(file, len(stored)),
        lambda: f"Wrote {file} ({counted(len(stored), 'figure')}).",
        as_json=as_json,
    )
