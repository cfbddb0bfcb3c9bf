"""The verb `init`: write a first study for this machine, from what is installed here."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.output import note

if TYPE_CHECKING:
    from harness.platform.platform import Platform
    from harness.study.first_study import Here

_REFERENCE = "torch"
"""What the others are compared with where it is ready: most published figures are of it, and every
other command computes with it unless told otherwise."""


@click.command("init")
@click.argument(
    "file", metavar="[FILE]", type=click.Path(path_type=Path), default=Path("mine.toml")
)
def command(file: Path) -> None:
    """Write a commented study for this machine to FILE (mine.toml), and ask nothing.

    Its frameworks are those that are ready here and that it has a cell for, its device is what the
    machine has. A file that is there already is left as it is, and the command ends with 2.
    """
    from harness import plugins
    from harness.environments.lock import lock_files
    from harness.errors import UsageError
    from harness.gate.everything_study import ready_frameworks, training_frameworks
    from harness.platform.platform import load_platform
    from harness.study.first_study import Here, first_study
    from harness.worker.network.workload import Training

    if file.suffix != ".toml":
        raise UsageError(f"{file}: a study's file ends with .toml, for example {file}.toml")
    platform = load_platform("local")
    names = plugins.workload_names()
    buildable = [name for name in training_frameworks() if name in lock_files()]
    here = Here(
        platform.title,
        sorted(ready_frameworks(platform), key=_is_not_reference),
        sorted(buildable, key=_is_not_reference),
        bool(platform.accelerators),
        [name for name in names if isinstance(plugins.workload(name), Training)],
    )
    here = _without_those_left_out(here, platform)
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(first_study(here))
    except FileExistsError:
        raise UsageError(f"{file} is there already, and is left as it is. Name another.") from None
    except FileNotFoundError:
        raise UsageError(f"{file.parent}: there is no such folder") from None
    ready = ", ".join(here.frameworks) or f"none yet: bakeoff env create {here.buildable[0]}"
    note(f"Wrote {file}. Its frameworks, ready here: {ready}.")
    note(f"Next: bakeoff plan {file}, bakeoff run {file}")


def _without_those_left_out(here: Here, platform: Platform) -> Here:
    """Take out the frameworks of which the study would have no cell, unless that leaves none."""
    from harness.plan.holes import NothingLeft
    from harness.plan.plan import make_plan
    from harness.study.first_study import first_study
    from harness.study.study import built_study

    if not here.frameworks:
        return here
    try:
        plan = make_plan(built_study("first", tomllib.loads(first_study(here))), platform)
    except NothingLeft:
        return here
    kept = {cell.framework for cell in plan.cells}
    why = {str(hole.factors["framework"]): hole.why for hole in plan.holes}
    return replace(
        here,
        frameworks=[name for name in here.frameworks if name in kept],
        cannot={name: why[name] for name in here.frameworks if name not in kept},
    )


def _is_not_reference(framework: str) -> bool:
    return framework != _REFERENCE
