"""The verb `reference`: figures to hold results against, published and one's own."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from harness.errors import RunError, UsageError


@click.group("reference")
def command() -> None:
    """List figures that others published, and keep those of one's own runs in the same format."""


@command.command("list")
@click.argument("words", metavar="[WORD]…", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print the same as JSON.")
def list_(words: tuple[str, ...], *, as_json: bool) -> None:
    """List all figures that contain every WORD; † is derived, a dash is not stated."""
    from harness.sections.context.published_figures import own, published

    shown = []
    for figure in (*own(), *published()):
        told = asdict(figure)
        text = " ".join(str(value) for value in told.values()).lower()
        if all(word.lower() in text for word in words):
            shown.append(told)
    if not shown:
        raise UsageError(f"no figure contains {' and '.join(words)}")
    if as_json:
        click.echo(json.dumps(shown, indent=1, ensure_ascii=False))
        return
    for told in shown:
        mark = " †" if told["kind"] == "derived" else ""
        batch = told["batch"] or told["global_batch"]
        parts = (
            f"{told['machine']} × {told['devices']}",
            f"{told['framework'] or '–'} {told['framework_version'] or ''}".strip(),
            told["workload"] or f"{told['model']} ({told['variant'] or 'variant not stated'})",
            f"batch {batch or '–'}",
            told["precision"] or "–",
            f"{told['value']:g} {told['unit']}{mark}",
            told["source"],
        )
        click.echo(" | ".join(parts))


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
    from harness.sections.context.closest_figure import OWN, from_cells
    from harness.sections.context.published_figures import parse
    from harness.sections.read import run_directories
    from harness.store.dataset import Dataset
    from harness.store.files import write_whole

    found = run_directories([run])
    if len(found) != 1:
        raise UsageError(f"{run} holds {len(found)} runs; name one")
    dataset = Dataset(found)
    info = dataset.runs[0].info
    text = from_cells(estimate_cells(dataset)[info.name], info, f"{OWN}{info.name}")
    kept = parse(text, info.name)
    if not kept:
        raise RunError(f"{run}: no cell has a figure to keep")
    file = folder / f"{name or info.name}.toml"
    if file.exists():
        raise UsageError(f"{file} is there already; choose another --name")
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(file, text)
    if as_json:
        click.echo(json.dumps({"file": str(file), "figures": len(kept)}))
        return
    click.echo(f"Wrote {file} ({len(kept)} figure{'' if len(kept) == 1 else 's'}).")
