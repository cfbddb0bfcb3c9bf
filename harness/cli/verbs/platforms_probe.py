"""`bakeoff platforms probe`: describe this machine, or nodes behind a launcher."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.output import Styled, emit, note
from harness.errors import UsageError
from harness.store.files import write_whole

if TYPE_CHECKING:
    from harness.probe.probe import MachineReadings

_NAME = re.compile(r"^[a-z0-9][a-z0-9._-]*$")


@click.command()
@click.option("--write", "name", metavar="NAME", help="Write the profile as platforms/NAME.toml.")
@click.option("--title", help="What people call the machine.")
@click.option("--through", help="A launcher, or a platform with its launcher's settings.")
@click.option("--nodes", help="Which nodes, for example cn[01-04]; default: all at hand.")
@click.option("--force", is_flag=True, help="Replace a profile of that name.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def probe(
    name: str | None,
    title: str | None,
    through: str | None,
    nodes: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """Describe this machine, or the share of it that is yours.

    With --through, compute nodes are described from a login node: each tells what it is, which
    needs nothing there but Python 3.6. Nodes that differ from the first are named, and the exit
    code is 1.
    """
    if nodes is not None and through is None:
        raise UsageError("--nodes needs --through: by which launcher are they reached?")
    if name is not None:
        place(name, user=False, force=force)  # before anything is asked
    odd: list[str] = []
    if through is None:
        data, seen = _here(title or name)
    else:
        data, seen, odd = _there(through, nodes, title or name)
    _tell(data, seen, name, force=force, as_json=as_json)
    for line in odd:
        note(Styled(f"! {line}", "yellow"))
    return 1 if odd else 0


def _here(title: str | None) -> tuple[dict[str, Any], MachineReadings]:
    from harness.probe.probe import frameworks_here, hostname, look, profile

    seen = look(frameworks_here())
    return profile(seen, title or hostname()), seen


def _there(
    through: str, nodes: str | None, title: str | None
) -> tuple[dict[str, Any], MachineReadings, list[str]]:
    from harness.probe import remote
    from harness.ranks import remote_node

    every: dict[str, MachineReadings] = {}
    reachable = remote_node.through(through, nodes)
    for node in reachable:
        facts = remote.tell(node)
        every[str(node)] = remote.look_there(facts, remote.importable(facts["packages"]))
    seen = next(iter(every.values()))
    named = title or seen.machine.hostname
    data = remote.profile_there(seen, named, reachable[0], len(reachable))
    return data, seen, remote.odd_ones(every)


def _tell(
    data: Mapping[str, Any],
    seen: MachineReadings,
    name: str | None,
    *,
    force: bool,
    as_json: bool,
) -> None:
    """Print or write a profile, with what was found in a few lines."""
    from harness.platform.platform import load_platform
    from harness.probe.check import tally
    from harness.probe.probe import summary
    from harness.toml.write import toml_text

    words = summary(seen)
    comments = [*words, "Measured and declared by `bakeoff platforms probe`; edit it as you like."]
    text = toml_text(data, comments)
    if as_json or name is None:
        emit(data, lambda: text, as_json=as_json)
    if name is None:
        return
    path = place(name, user=False, force=force)
    write(path, text)
    count = tally(load_platform(str(path)))
    lines = sum(1 for line in text.splitlines() if line and not line.startswith("#"))
    note(
        f"Wrote {path} ({lines} lines; {count['measured']} values measured, "
        f"{count['declared']} declared, {count['unknown']} unknown)."
    )
    for line in words:
        note(f"  {line}")
    unknown = "  unknown: memory and link bandwidth, peak FLOP/s      →  "
    note(f"{unknown}bakeoff platforms calibrate {name}")


def place(name: str, *, user: bool, force: bool) -> Path:
    """Say where a new profile of a name goes; refuse to replace one unless asked to."""
    from harness.plugins import user_folder

    if not _NAME.match(name):
        raise UsageError(f"'{name}' cannot name a profile: use small letters, digits, - and _")
    path = (user_folder("platforms") if user else Path("platforms")) / f"{name}.toml"
    if path.exists() and not force:
        raise UsageError(f"{path} is there already. Replace it with --force.")
    return path


def write(path: Path, text: str) -> None:
    """Write a profile, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
