"""The verb `pack`: one archive that installs Bakeoff where there is no network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli import completion
from harness.cli.output import emit
from harness.units import decimal_size

if TYPE_CHECKING:
    from harness.environments.offline.pack import Packed


@click.command("pack")
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--frameworks", metavar="NAMES", help="Environments to pack: `bakeoff env list`.")
@click.option(
    "--platform",
    shell_complete=completion.platforms,
    help="The machine it is for: its architecture, whether it has GPUs, your own profile of it.",
)
@click.option("--python", metavar="3.N", help="Its Python; default: the version that runs this.")
@click.option("--glibc", metavar="2.N", help="Its C library; default: this machine's.")
@click.option("--device", type=click.Choice(["cpu", "gpu"]), help="Which build of frameworks.")
@click.option("--without", metavar="NAMES", help="Packages that its Python has already.")
@click.option("--json", "as_json", is_flag=True, help="Print what was packed as JSON.")
def command(
    *,
    out: Path,
    frameworks: str | None,
    platform: str | None,
    python: str | None,
    glibc: str | None,
    device: str | None,
    without: str | None,
    as_json: bool,
) -> None:
    """Make one archive that installs Bakeoff and frameworks without a network.

    OUT is a .tar. It holds wheels for the machine's Python, architecture and C library, locks with
    the SHA-256 of each wheel, the recipe of this machine's data sets, your own profile, and
    install.py. pip fetches the wheels from the indexes that it is configured for.
    """
    from harness.cli.build_progress import listening
    from harness.data.inspect import recipe
    from harness.environments.lock import EnvironmentReference, normal
    from harness.environments.offline.pack import PackOrder, pack
    from harness.environments.offline.target import Machine
    from harness.errors import UsageError
    from harness.platform.platform import load_platform
    from harness.run.storage.tiers import data_folder

    if out.suffix != ".tar":
        raise UsageError(f"{out}: an archive's name ends in .tar.")
    there = None if platform is None else load_platform(platform)
    is_own = there is not None and there.file is not None and not _is_shipped(Path(there.file))
    profiles = {there.name: Path(there.file or "")} if there is not None and is_own else {}
    order = PackOrder(
        machine=Machine.described(python, there.node.architecture if there else None, glibc),
        device=device or ("gpu" if there is not None and there.accelerators else "cpu"),
        references=[EnvironmentReference.parse(name) for name in _names(frameworks)],
        without=frozenset(map(normal, _names(without))),
        platforms=profiles,
        recipe=recipe(data_folder(load_platform("local"), None)),
    )
    with listening() as listener:
        packed = pack(order, out, listener)
    emit(packed, lambda: _in_words(packed), as_json=as_json)


def _is_shipped(file: Path) -> bool:
    import platforms

    return file.is_relative_to(Path(platforms.__path__[0]).resolve())


def _names(text: str | None) -> list[str]:
    return [one.strip() for one in (text or "").split(",") if one.strip()]


def _in_words(packed: Packed) -> list[str]:
    name, python = packed.path.stem, packed.target["python"]
    return [
        f"{packed.path}: {decimal_size(packed.bytes)}, SHA-256 {packed.sha256}",
        f"There, with Python {python}: tar xf {name}.tar && python{python} {name}/install.py WHERE",
    ]
