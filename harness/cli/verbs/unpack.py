"""The verb `unpack`: install what an archive of `pack` holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.output import emit

if TYPE_CHECKING:
    from harness.environments.offline.unpack import Unpacked


@click.command("unpack")
@click.argument("archive", type=click.Path(path_type=Path))
@click.option(
    "--python",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The interpreter of the environments; by default a fitting one is looked for.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was installed as JSON.")
def command(*, archive: Path, python: Path | None, as_json: bool) -> None:
    """Install what `bakeoff pack` made, from its wheels alone.

    ARCHIVE is the .tar, or the folder that tar made of it. Every file is held to its SHA-256 before
    anything is installed. A machine without Bakeoff runs the archive's install.py, which ends here.
    """
    from harness.cli.build_progress import listening
    from harness.environments.offline.unpack import unpack

    with listening() as listener:
        brought = unpack(archive, listener, python=python)
    emit(brought, lambda: _in_words(brought), as_json=as_json)


def _in_words(brought: Unpacked) -> list[str]:
    lines = [f"{one.reference}: {one.root}" for one in brought.environments]
    lines += [f"profile: {path}" for path in brought.platforms]
    recipe = [line for line in brought.recipe.splitlines() if line.startswith("bakeoff ")]
    lines += ["The data sets of the machine that packed it are made by:", *recipe] if recipe else []
    return lines or ["There is nothing to build: no framework was packed."]
