"""`bakeoff platforms`: describe machines, probe this one, show who would run where."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import click

from harness.cli.verbs.platforms_calibrate import calibrate
from harness.cli.verbs.platforms_probe import place, probe, write
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.machine.topology import Topology
    from harness.platform.platform import Platform
    from harness.probe.check import Compared

_SIGNS = {"agrees": ("✓", "green"), "differs": ("✗", "red"), "not seen": ("·", "bright_black")}


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
    from dataclasses import asdict

    from harness.platform.platform import load_platform
    from harness.probe.check import compare, is_other_machine, tally, unsourced
    from harness.probe.probe import look
    from harness.ranks.nodes import launcher

    platform = load_platform(name)
    launcher(platform)
    seen = look()
    other = None if here else is_other_machine(platform, seen)
    rows = compare(platform, seen) if other is None else []
    differing = [row for row in rows if row.state == "differs"]
    if as_json:
        facts = {
            "name": platform.name,
            "tried": platform.tried,
            "other_machine": other,
            "values": dict(tally(platform)),
            "unsourced": unsourced(platform),
            "compared": [asdict(row) for row in rows],
        }
        click.echo(json.dumps(facts, indent=1))
        return 1 if differing else 0
    count = tally(platform)
    click.echo(
        f"{platform.name}: a valid profile; {count['measured']} values measured, "
        f"{count['declared']} declared, {count['unknown']} unknown."
    )
    if not platform.tried:
        click.echo("Nobody here has run on this machine.")
    nameless = unsourced(platform)
    if nameless:
        click.echo(f"No source is given for: {', '.join(nameless)}.")
    if other is not None:
        click.echo(f"This is another machine: {other}. Its claims were not compared.")
        return 0
    if platform.binding.memory != "any" and shutil.which("numactl") is None:
        click.echo(
            f"binding.memory is {platform.binding.memory}, which needs numactl; it is not here, so "
            "no rank would start."
        )
    _print_rows(rows)
    click.echo(
        f"{len(differing)} of {len(rows)} claims differ from this machine."
        if differing
        else f"This machine agrees, in all {sum(r.state == 'agrees' for r in rows)} claims seen."
    )
    return 1 if differing else 0


@command.command()
@click.argument("name")
@click.option("--ranks", type=click.IntRange(1), help="Show where so many ranks would run.")
@click.option("--threads", type=click.IntRange(1), help="Threads of each rank.")
@click.option("--gpus", type=click.IntRange(0), default=0, help="GPUs of each rank.")
@click.option("--json", "as_json", is_flag=True, help="Print the profile as JSON.")
def show(name: str, ranks: int | None, threads: int | None, gpus: int, as_json: bool) -> None:
    """Show a profile with its sources, its node's layout, and who would run where."""
    from harness.launch.binding import bind
    from harness.launch.binding_request import wish
    from harness.launch.binding_text import draw, draw_node
    from harness.platform.platform import load_platform

    platform = load_platform(name)
    if as_json:
        click.echo(json.dumps(platform.model_dump(exclude_none=True), indent=1))
        return
    _print_platform(platform)
    topology = _topology(platform)
    if topology is None:
        if ranks is not None:
            raise UsageError(
                f"{name} does not say how many cores its nodes have, so nothing can be laid out.\n"
                "    Give it node.cores, or probe the machine."
            )
        return
    click.echo()
    click.echo(draw_node(topology))
    if ranks is None:
        return
    factors = {
        "ranks_per_node": ranks,
        "threads": threads,
        "device": "gpu" if gpus else "cpu",
        "devices_per_rank": gpus,
    }
    wanted = wish(platform, factors, devices=len(topology.devices))
    click.echo()
    click.echo(draw(bind(topology, wanted)))


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
    from harness.probe.write import profile_text

    path = place(name, user=user, force=force)
    if relative is None:
        relative = click.prompt(
            f"Which profile is closest ({', '.join(platform_names())})", default="local", err=True
        )
    parent = load_platform(str(relative))
    if title is None:
        title = click.prompt("What do people call the machine", default=name, err=True)
    data: dict[str, Any] = {"title": title, "extends": parent.name}
    if nodes is not None:
        data["nodes"] = nodes
    if launcher is not None:
        data["launcher"] = {"name": launcher}
    comment = f"Refines {parent.name}: write here what differs; say in [sources] where it is from."
    write(path, profile_text(data, [comment]))
    click.echo(f"Wrote {path}. Next: edit it, then bakeoff platforms check {name}", err=True)


def _topology(platform: Platform) -> Topology | None:
    """Lay out what a profile claims; one that stands for this machine is read from it."""
    if platform.as_found:
        import os

        from harness.machine.sysfs_topology import read_topology

        return read_topology(os.sched_getaffinity(0))
    from harness.launch.profile_topology import claimed

    return claimed(platform)


def _print_platform(platform: Platform) -> None:
    from harness.probe.show import lines

    click.secho(platform.title, bold=True)
    if not platform.tried:
        click.echo("Nobody here has run on this machine.")
    for line in lines(platform):
        click.echo(line)


def _print_rows(rows: list[Compared]) -> None:
    from harness.probe.show import value_text

    width = max((len(row.place) for row in rows), default=0)
    for row in rows:
        sign, colour = _SIGNS[row.state]
        claim = value_text(row.place, row.claim)
        detail = {
            "agrees": "",
            "differs": f"; here: {value_text(row.place, row.fact)}",
            "not seen": "; cannot be seen here",
        }[row.state]
        click.echo(f"{click.style(sign, fg=colour)} {row.place:<{width}}  {claim}{detail}")
