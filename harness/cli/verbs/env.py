"""``bakeoff env``: build, list, check and remove the environments of frameworks."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.analysis.numbers import UNKNOWN
from harness.cli import completion
from harness.cli.output import Table, emit, emit_json, note, say
from harness.errors import BakeoffError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.environments.inventory import PackageEntry

_STATES = {
    "ready": "✓",
    "not built": UNKNOWN,
    "unfinished": "…",
    "broken": "✗",
    "old": "○",
    "unchecked": "·",
}


@click.group("env")
def command() -> None:
    """Build, list, check and remove framework environments.

    Each framework lives in a virtual environment of its own, so that no framework's pins break
    another's. They lie in BAKEOFF_HOME, or bakeoff/ in your cache folder, and may be deleted and
    built again at any time.
    """


@command.command()
@click.argument(
    "names", nargs=-1, required=True, metavar="NAME…", shell_complete=completion.environments
)
@click.option(
    "--python",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The interpreter to build with; by default a fitting one is looked for.",
)
@click.option(
    "--device",
    type=click.Choice(["cpu", "gpu"]),
    help="Which build; by default what this machine has.",
)
@click.option("--through", help="Build on nodes: a launcher, or a platform with its settings.")
@click.option("--nodes", help="Which of them builds, for example cn07; default: the first at hand.")
@click.option("--json", "as_json", is_flag=True, help="Print what was built as JSON.")
def create(
    names: tuple[str, ...],
    python: Path | None,
    device: str | None,
    through: str | None,
    nodes: str | None,
    as_json: bool,
) -> None:
    """Build environments: torch, tensorflow@1.15, torch[hdf5] …

    What is built already is reused; what was interrupted goes on where it stopped. With --through,
    the environment is for the nodes' own Python and architecture: wheels are fetched here, and
    installed there without a network.
    """
    from harness.cli.build_progress import listening
    from harness.environments import local, on_nodes
    from harness.environments.lock import EnvironmentReference, load_lock
    from harness.ranks.remote_node import through as reached

    references = [EnvironmentReference.parse(name) for name in names]
    for reference in references:
        load_lock(reference.lock)
    if nodes is not None and through is None:
        raise UsageError("--nodes needs --through: by which launcher are they reached?")
    node = None if through is None else reached(through, nodes)[0]
    built = []
    with listening() as listener:
        for reference in references:
            try:
                if node is None:
                    built.append(local.create(reference, listener, python=python, device=device))
                else:
                    built.append(
                        on_nodes.create(reference, listener, node, python=python, device=device)
                    )
            except (KeyboardInterrupt, SystemExit):
                listener.say(f"To go on: bakeoff env create {shlex.join(names)}")
                raise
    if as_json:
        emit_json(built)


_platform = click.option(
    "--platform",
    default="local",
    show_default=True,
    shell_complete=completion.platforms,
    help="The machine whose interpreters, modules and programs count.",
)


@command.command("list")
@_platform
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def list_environments(platform: str, as_json: bool) -> None:
    """List all environments: state, version, size, place.

    What Bakeoff did not build is asked: the framework is imported, the program says its version.
    """
    from harness.environments.inventory import inventory
    from harness.platform.platform import load_platform

    entries = inventory(load_platform(platform))
    emit(entries, lambda: _in_columns(entries), as_json=as_json)


def _in_columns(entries: Iterable[PackageEntry]) -> Table:
    from harness.units import decimal_size

    rows = [
        (
            _STATES.get(entry.state, "✗"),
            entry.name,
            entry.state,
            " ".join(filter(None, (entry.version, _build(entry.device)))) or UNKNOWN,
            entry.python_version or UNKNOWN,
            UNKNOWN if entry.size_bytes is None else decimal_size(entry.size_bytes),
            _where(entry),
        )
        for entry in entries
    ]
    head = ("", "name", "state", "version", "python", "size", "where, or how to get it")
    return Table(rows, head)


@command.command()
@click.argument("names", nargs=-1, metavar="[NAME…]", shell_complete=completion.environments)
@_platform
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def check(names: tuple[str, ...], platform: str, as_json: bool) -> int:
    """Compare environments with their locks, look for damage and import each framework.

    Without names: every environment that is built, or that a platform or a variable names.
    """
    from harness.environments import cache, container_check, inventory
    from harness.environments.lock import EnvironmentReference, load_lock
    from harness.platform.platform import load_platform

    references = [EnvironmentReference.parse(name) for name in names]
    for reference in references:
        load_lock(reference.lock).pinned(reference)  # refuses a group that there is not
    wanted = [str(reference) for reference in references]
    there = load_platform(platform)
    entries = [one for one in inventory.inventory(there) if not wanted or one.name in wanted]
    found: dict[str, list[str]] = {
        name: [f"not built: bakeoff env create {shlex.quote(name)}"]
        for name in wanted
        if all(entry.name != name for entry in entries)
    }
    if not as_json:
        for name, faults in found.items():
            say(f"{name}: {faults[0]}")
    names_of = Counter(entry.name for entry in entries)
    for entry in entries:
        environment = cache.read(entry.path) if entry.path else None
        if environment is not None and entry.state not in ("old", "unfinished"):
            faults = inventory.check(EnvironmentReference.parse(entry.name), environment)
        elif entry.state == "unchecked":
            inside = container_check.complaint(load_lock(entry.name), there)
            faults = [inside] if inside else []
        elif entry.named_by or (wanted and entry.state != "ready"):
            faults = [] if entry.state == "ready" else [f"{entry.state}: {entry.detail}"]
        else:
            continue
        what = entry.name if names_of[entry.name] == 1 else f"{entry.name} {_of_several(entry)}"
        found[what] = faults
        fine = f"answers where {entry.named_by} says" if entry.named_by else "as the lock says"
        if not as_json:  # one by one, as checking takes long
            say(f"{what}: {'; '.join(faults) or fine}")
    if as_json:
        emit_json(found)
    if not found:
        raise BakeoffError("No environment is built. To build one: bakeoff env create torch")
    return 1 if any(found.values()) else 0


@command.command()
@click.argument("names", nargs=-1, metavar="[NAME…]", shell_complete=completion.environments)
@click.option("--old", is_flag=True, help="Everything unfinished, broken or without a lock.")
@click.option("--json", "as_json", is_flag=True, help="Print what was removed as JSON.")
def remove(names: tuple[str, ...], old: bool, as_json: bool) -> None:
    """Delete environments and give their space back."""
    from harness.environments import inventory, local, verify
    from harness.environments.lock import EnvironmentReference
    from harness.units import decimal_size

    folders = [
        folder for name in names for folder in _owned(inventory, EnvironmentReference.parse(name))
    ]
    if old:
        gone = ("unfinished", "broken", "old")
        folders += [
            entry.path for entry in inventory.inventory() if entry.path and entry.state in gone
        ]
    if not names and not old:
        raise UsageError("Name the environments to remove, or give --old.")
    removed = []
    for folder in dict.fromkeys(folders):
        freed = verify.disk_bytes(folder)
        local.remove(folder)
        removed.append({"path": folder, "size_bytes": freed})
        note(f"Removed {folder} ({decimal_size(freed)}).")
    if as_json:
        emit_json(removed)


def _owned(inventory: Any, reference: Any) -> list[Path]:
    folders: list[Path] = inventory.owned(reference)
    if not folders:
        raise BakeoffError(f"{reference} has no environment here; there is nothing to remove.")
    return folders


def _where(entry: PackageEntry) -> str:
    return "  ".join(map(str, filter(None, (entry.path or entry.python, entry.detail))))


def _of_several(entry: PackageEntry) -> str:
    """Say which of a framework's places is meant: cells may use its container and its venv."""
    if entry.state == "unchecked":
        return f"in the container of {entry.named_by}"
    return f"as {entry.named_by} names it" if entry.named_by else f"in {entry.path}"


def _build(device: str | None) -> str | None:
    return f"({device})" if device in ("cpu", "gpu") else None
