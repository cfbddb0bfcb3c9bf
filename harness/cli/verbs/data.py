"""``bakeoff data``: make, list, check and remove the data sets that studies read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.output import emit, emit_json, note
from harness.errors import UsageError
from harness.units import scaled

if TYPE_CHECKING:
    from collections.abc import Callable


def _placed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say where data sets lie."""
    for option in (
        click.option("--platform", default="local", show_default=True, metavar="NAME|FILE"),
        click.option(
            "--at",
            metavar="TIER|FOLDER",
            help="A storage tier of the platform, or a folder; by default the tier for data.",
        ),
    ):
        function = option(function)
    return function


def _folder(at: str | None, platform: str) -> Path:
    from harness.platform.platform import load_platform
    from harness.run.storage.tiers import data_folder

    if at is not None and ("/" in at or at in (".", "..")):
        return Path(at)
    return data_folder(load_platform(platform), at)


def _set(at: str | None, platform: str, name: str) -> Path:
    """Give the folder of a set that is called by its name alone."""
    if name in ("", ".", "..") or "/" in name:
        raise UsageError(
            f"'{name}' is no data set's name; `bakeoff data list` shows them. A set in another "
            "folder is named with --at FOLDER."
        )
    return _folder(at, platform) / name


@click.group("data")
def command() -> None:
    """Make, list, check and remove the data sets that studies read.

    Samples follow from a seed alone, the same on every machine. Sets lie in bakeoff-data/ on their
    storage tier and may be deleted and made again at any time.
    """


@command.command()
@click.argument("content", metavar="CONTENT")
@click.option("--format", "file_format", help="By default raw; of tokens uint16.")
@click.option("--samples", type=click.IntRange(1), required=True, help="How many to make.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@click.option("--stripe-count", type=click.IntRange(1), help="Lustre servers a file lies on.")
@click.option("--stripe-mb", type=click.IntRange(1), help="Mebibytes together on one of them.")
@_placed
@click.option("--json", "as_json", is_flag=True, help="Print what the set is as JSON.")
def create(
    content: str,
    file_format: str | None,
    samples: int,
    seed: int,
    stripe_count: int | None,
    stripe_mb: int | None,
    at: str | None,
    platform: str,
    as_json: bool,
) -> None:
    """Make a data set: pictures, small-pictures, volumes, traces, tokens …

    What is there already is left as it is; what was interrupted goes on where it stopped.
    """
    from harness.cli.build_progress import listening
    from harness.data.catalogue import usual_format
    from harness.data.create import create as make
    from harness.data.inspect import described
    from harness.data.sets import DataSetSpec
    from harness.run.storage.lustre import Stripes, lay

    spec = DataSetSpec(content, file_format or usual_format(content), samples, seed)
    stripes = Stripes(stripe_count, stripe_mb)
    folder = _folder(at, platform) / (spec.name + stripes.suffix)
    with listening() as listener:
        make(spec, folder, doing=listener.doing, lay=lambda files: lay(files, stripes))
    description = described(folder)
    emit(
        {"path": folder, **description},
        lambda: f"{folder}: {_in_words(description)}",
        as_json=as_json,
    )


@command.command("list")
@_placed
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def list_sets(at: str | None, platform: str, as_json: bool) -> None:
    """List the data sets of a tier."""
    from harness.data.inspect import described
    from harness.data.sets import is_finished

    place = _folder(at, platform)
    there = sorted(one for one in place.glob("*") if one.is_dir()) if place.is_dir() else []
    descriptions = {str(one): described(one) if is_finished(one) else None for one in there}
    lines = [
        f"{path}: {_in_words(one) if one else 'not finished'}" for path, one in descriptions.items()
    ]
    emit(descriptions, lambda: lines, as_json=as_json)
    if not descriptions and not as_json:
        note(f"{place} holds no data set. To make one: bakeoff data create pictures")


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@_placed
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def check(names: tuple[str, ...], at: str | None, platform: str, as_json: bool) -> int:
    """Compare data sets with their manifests, every byte. Ends with 1 if anything differs."""
    from harness.cli.build_progress import listening
    from harness.data.inspect import faults

    found = {}
    with listening() as listener:
        for name in names:
            found[name] = faults(_set(at, platform, name), doing=listener.doing)
    lines = [f"{name}: {'; '.join(w) or 'as its manifest says'}" for name, w in found.items()]
    emit(found, lambda: lines, as_json=as_json)
    return 1 if any(found.values()) else 0


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@_placed
@click.option("--json", "as_json", is_flag=True, help="Print what was removed as JSON.")
def remove(names: tuple[str, ...], at: str | None, platform: str, as_json: bool) -> None:
    """Delete data sets and give their space back.

    Only what making them wrote is deleted; what else lies in their folders is named and left.
    """
    from harness.data.removal import remove as delete

    folders = {name: _set(at, platform, name) for name in names}
    done = {name: delete(folder) for name, folder in folders.items()}
    if as_json:
        emit_json(done)
    for name, one in done.items():
        note(f"Removed {name} ({scaled(one.bytes, 'B')}).")
        if one.left:
            some = ", ".join(one.left[:5]) + (" …" if len(one.left) > 5 else "")
            note(f"{folders[name]} stays, with what is not the set's: {some}.")


def _in_words(made: dict[str, Any]) -> str:
    return (
        f"{made['samples']} {made['content']} in {made['files']} {made['format']} files, "
        f"{scaled(made['bytes'], 'B')}, median {scaled(made['median'], 'B')}"
    )
