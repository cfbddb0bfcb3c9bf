"""`bakeoff platforms`: describe machines, probe this one, show who would run where."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from harness.cli.output import Part, Styled, Table, emit, note
from harness.cli.verbs.platforms_calibrate import calibrate
from harness.cli.verbs.platforms_probe import place, probe, write
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.machine.topology import Topology
    from harness.platform.platform import Platform
    from harness.probe.check import Compared
    from harness.worker.scale import Scale

_SIGNS = {"agrees": ("✓", "green"), "differs": ("✗", "red"), "not seen": ("·", "bright_black")}

_WIDEST = 44
_UNTRIED = "Nobody here has run on this machine."


@click.group("platforms")
def command() -> None:
    """Describe machines: probe this one, check and show profiles, start new ones.

    A profile is one TOML file, in platforms/ of this folder or in ~/.config/bakeoff/platforms/.
    """


command.add_command(calibrate)
command.add_command(probe)


@command.command()
@click.argument("name")
@click.option("--here", is_flag=True, help="Insist that this is the machine.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def check(name: str, here: bool, as_json: bool) -> int:
    """Check a profile: its file, its sources, and its claims where this is the machine.

    The exit code is 1 if a claim differs from what this machine shows.
    """
    from harness.platform.platform import load_platform
    from harness.probe.check import compare, is_other_machine, names_login_node, tally, unsourced
    from harness.probe.probe import look
    from harness.ranks.nodes import launcher

    platform = load_platform(name)
    queue = launcher(platform)
    seen = look()
    other = None if here else is_other_machine(platform, seen)
    login = None if here or other else names_login_node(platform, queue, os.environ)
    checked = Checked(
        name=platform.name,
        tried=platform.tried,
        other_machine=other,
        login_node=login,
        values=dict(tally(platform)),
        unsourced=unsourced(platform),
        compared=[] if other or login else compare(platform, seen),
    )
    emit(checked, lambda: _in_words(checked, platform), as_json=as_json)
    return 1 if checked.differing else 0


@dataclass(frozen=True)
class Checked:
    """A profile held against its sources and, where this is the machine, against it."""

    name: str
    tried: bool
    other_machine: str | None
    """Why this is another machine, whose claims cannot be compared here."""
    login_node: str | None
    """This host, where it is of that machine but none of its compute nodes."""
    values: Mapping[str, int]
    """How many are measured, declared and unknown."""
    unsourced: Sequence[str]
    compared: Sequence[Compared]

    @property
    def differing(self) -> int:
        """How many claims are not what this machine shows."""
        return sum(row.state == "differs" for row in self.compared)


def _in_words(checked: Checked, platform: Platform) -> Iterator[Part]:
    count, rows = checked.values, checked.compared
    yield (
        f"{checked.name}: a valid profile; {count['measured']} values measured, "
        f"{count['declared']} declared, {count['unknown']} unknown."
    )
    if not checked.tried:
        yield _UNTRIED
    if checked.unsourced:
        yield f"No source is given for: {', '.join(checked.unsourced)}."
    if checked.other_machine is not None:
        yield f"This is another machine: {checked.other_machine}. Its claims were not compared."
        return
    if checked.login_node is not None:
        yield (
            f"Its claims are about compute nodes, and {checked.login_node} is none, so they were "
            f"not compared. On a node of an allocation: bakeoff platforms check {checked.name}"
        )
        return
    if platform.binding.memory != "any" and shutil.which("numactl") is None:
        yield (
            f"binding.memory is {platform.binding.memory}, which needs numactl; it is not here, so "
            "no rank would start."
        )
    yield Table([_claim(row) for row in rows])
    agreeing = sum(row.state == "agrees" for row in rows)
    if checked.differing:
        yield f"{checked.differing} of {len(rows)} claims differ from this machine."
    elif agreeing:
        yield f"This machine agrees, in all {agreeing} claims seen."
    else:
        yield "None of its claims could be seen here."


def _claim(row: Compared) -> tuple[Styled, str, str]:
    from harness.probe.show import value_text

    detail = {
        "agrees": "",
        "differs": f"; here: {value_text(row.place, row.fact)}",
        "not seen": "; cannot be seen here",
    }[row.state]
    return Styled(*_SIGNS[row.state]), row.place, f"{value_text(row.place, row.claim)}{detail}"


@command.command()
@click.argument("name")
@click.option("--ranks", type=click.IntRange(1), help="Show where so many ranks would run.")
@click.option("--threads", type=click.IntRange(1), help="Threads of each rank.")
@click.option("--gpus", type=click.IntRange(0), default=0, help="GPUs of each rank.")
@click.option("--json", "as_json", is_flag=True, help="Print the profile as JSON.")
def show(name: str, ranks: int | None, threads: int | None, gpus: int, as_json: bool) -> None:
    """Show a profile with its sources, its node's layout, and who would run where."""
    from harness.platform.platform import load_platform
    from harness.worker.scale import Scale

    platform = load_platform(name)
    topology = None if as_json else _topology(platform)
    if ranks is not None and topology is None and not as_json:
        raise UsageError(
            f"{name} does not say how many cores its nodes have, so nothing can be laid out.\n"
            "    Give it node.cores, or probe the machine."
        )
    scale = None
    if ranks is not None:
        scale = Scale(ranks_per_node=ranks, devices_per_rank=gpus or 1)
    factors = {"threads": threads, "device": "gpu" if gpus else "cpu"}
    emit(
        platform.model_dump(exclude_none=True),
        lambda: _profile(platform, topology, scale, factors),
        as_json=as_json,
    )


@command.command()
@click.argument("name")
@click.option("--from", "relative", help="The profile to start from.")
@click.option("--title", help="What people call the machine.")
@click.option("--nodes", type=click.IntRange(1), help="How many nodes there are.")
@click.option("--launcher", help="What starts jobs there: local, slurm, mpirun …")
@click.option("--user", is_flag=True, help="Write into ~/.config/bakeoff/platforms/.")
@click.option("--force", is_flag=True, help="Replace a profile of that name.")
def new(
    name: str,
    relative: str | None,
    title: str | None,
    nodes: int | None,
    launcher: str | None,
    user: bool,
    force: bool,
) -> None:
    """Write a profile that refines a close relative; asks which and its title, unless told."""
    from harness.platform.platform import load_platform, platform_names
    from harness.platform.skeleton import skeleton
    from harness.toml.write import toml_text

    path = place(name, user=user, force=force)
    if relative is None:
        relative = _asked(f"Which profile is closest ({', '.join(platform_names())})", "local")
    parent = load_platform(str(relative))
    if title is None:
        title = _asked("What do people call the machine", name)
    data: dict[str, Any] = {"title": title, "extends": parent.name}
    if nodes is not None:
        data["nodes"] = nodes
    if launcher is not None:
        data["launcher"] = {"name": launcher}
    comment = f"Refines {parent.name}: write here what differs; say in [sources] where it is from."
    text = toml_text(data, [comment])
    write(path, skeleton(name, parent, launcher or parent.launcher.name, text))
    note(f"Wrote {path}. Next: fill it in, then bakeoff platforms check {name}")


def _asked(question: str, default: str) -> str:
    """Ask; where nobody sits at a terminal, take a line that was piped in, else the default."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().strip() or default
    return str(click.prompt(question, default=default, err=True))


def _topology(platform: Platform) -> Topology | None:
    """Lay out what a profile claims; one that stands for this machine is read from it."""
    if platform.as_found:
        import os

        from harness.machine.sysfs_topology import read_topology

        return read_topology(os.sched_getaffinity(0))
    from harness.launch.profile_topology import claimed

    return claimed(platform)


def _profile(
    platform: Platform,
    topology: Topology | None,
    scale: Scale | None,
    factors: Mapping[str, Any],
) -> Iterator[Part]:
    """Give the values with their sources, then the node, then who would run where."""
    from harness.launch.binding import bind
    from harness.launch.binding_request import wish
    from harness.launch.binding_text import draw, draw_node
    from harness.probe.show import rows

    yield Styled(platform.title, bold=True)
    if not platform.tried:
        yield _UNTRIED
    yield Table(rows(platform), widest=_WIDEST)
    if topology is None:
        return
    yield ""
    yield draw_node(topology)
    if scale is not None:
        wanted = wish(platform, scale, factors, devices=len(topology.devices))
        yield ""
        yield draw(bind(topology, wanted))
