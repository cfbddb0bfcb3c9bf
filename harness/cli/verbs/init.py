"""The verb `init`: write a first study for this machine, from what is installed here."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.output import note

_REFERENCE = "torch"
"""What the others are compared with where it is ready: most published figures are of it, and every
other command computes with it unless told otherwise."""


@click.command("init")
@click.argument(
    "file", metavar="[FILE]", type=click.Path(path_type=Path), default=Path("mine.toml")
)
def command(file: Path) -> None:
    """Write a commented study for this machine to FILE (mine.toml), and ask nothing.

    Its frameworks are those that are ready here, its device is what the machine has. A file that is
    there already is left as it is, and the command ends with 2.
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
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(first_study(here))
    except FileExistsError:
        raise UsageError(f"{file} is there already, and is left as it is. Name another.") from None
    except FileNotFoundError:
        raise UsageError(f"{file.parent}: there is no such folder") from None
    ready = ", ".join(here.frameworks) or f"none yet: bakeoff env create {here.buildable[0]}"
    note(f"Wrote {file}. Frameworks that are ready here: {ready}.")
    note(f"Next: bakeoff plan {file}, bakeoff run {file}")


def _is_not_reference(framework: str) -> bool:
    return framework != _REFERENCE
