"""Make one archive that installs Bakeoff and framework environments where there is no network."""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.environments import cache, pythons
from harness.environments.build import BuildListener, BuildOrder, lock_to_build
from harness.environments.lock import EnvironmentReference, normal, own_lock_files
from harness.environments.offline import archive, install
from harness.environments.offline.own_wheel import make_own_wheel, own_distribution
from harness.environments.offline.target import Machine
from harness.environments.package_index.download_size import amount
from harness.environments.package_index.needed import Needed
from harness.environments.package_index.pip import (
    Item,
    NotOffered,
    file_fetched,
    hashed,
    installer,
)
from harness.environments.package_index.pip_for_nodes import Target
from harness.errors import BakeoffError, Unavailable, UsageError, nearest
from harness.file_digest import sha256

_IN_FILE_NAMES = str.maketrans({"[": "+", ",": "+", "]": None})
"""What names of environments hold and names of files cannot."""


@dataclass(frozen=True)
class PackOrder:
    """What goes into an archive, and for which machine."""

    machine: Machine
    device: str
    references: Sequence[EnvironmentReference]
    without: frozenset[str]
    """Packages that the Python there has already."""
    platforms: Mapping[str, Path]
    """Profiles of the user's own, which no other Bakeoff has."""
    recipe: str
    """How the data sets of this machine are made."""


@dataclass(frozen=True)
class Packed:
    """An archive that was made."""

    path: Path
    bytes: int
    sha256: str
    target: Mapping[str, str]
    environments: tuple[str, ...]
    without: tuple[str, ...]


def pack(order: PackOrder, out: Path, listener: BuildListener) -> Packed:
    """Fetch all that is needed, each file by its hash, and write the archive."""
    if out.exists():
        raise UsageError(f"{out} is there already, and is left as it is. Name another.")
    if not out.parent.is_dir():
        raise UsageError(f"{out.parent} is no folder.")
    for reference in order.references:
        _require_wheels(reference)
    out = out.absolute()
    with cache.scratch() as place:
        folder = place / "packed"
        (folder / "wheels").mkdir(parents=True)
        without, pip = _pack_bakeoff(order, folder, place, listener)
        environments = [_pack_environment(one, order, folder, listener) for one in order.references]
        _pack_texts(order, folder)
        manifest = {
            "version": install.VERSION,
            "bakeoff": own_distribution().version,
            "target": order.machine.facts,
            "without": list(without),
            "pip": pip,
            "environments": environments,
            "files": dict(_hashed_files(folder)),
        }
        listener.doing(f"writing {out}")
        archive.write(folder, out, manifest)
    return Packed(
        path=out,
        bytes=out.stat().st_size,
        sha256=sha256(out),
        target=order.machine.facts,
        environments=tuple(map(str, order.references)),
        without=without,
    )


def _pack_bakeoff(
    order: PackOrder, folder: Path, scratch: Path, listener: BuildListener
) -> tuple[tuple[str, ...], str]:
    """Bring Bakeoff's wheel and all it needs; give what has to be there, and which file is pip."""
    own, there = pythons.inspect(sys.executable), order.machine.target()
    assert own is not None, "the interpreter that runs this runs"
    listener.doing("making a wheel of this Bakeoff")
    wheels = folder / "wheels"
    wheel = make_own_wheel(wheels, scratch, installer(own, own.path))
    # what it needs by the wheel itself: a checkout may have changed since it was installed
    (distribution,) = importlib.metadata.distributions(name="bakeoff", path=[str(wheel)])
    requirements = [*(one for one in distribution.requires or () if "extra ==" not in one), "pip"]
    listener.doing("asking the package index for what Bakeoff needs")
    needed = _newest_tried(there, requirements, order.without, listener)
    known = {normal(one.name) for one in needed.items} | {
        normal(one) for one in needed.names_left_out
    }
    for name in sorted(order.without - known):
        raise UsageError(
            f"--without {name}: Bakeoff does not need it.{nearest(name, known)}\n"
            f"    It needs: {', '.join(sorted(known))}."
        )
    listener.say(f"Bakeoff {distribution.version} for {there.python.tag}: {amount(needed.items)}")
    there.fetch(needed.items, wheels, _followed(listener))
    own_item = Item("bakeoff", distribution.version, wheel.as_uri(), sha256(wheel))
    (folder / "bakeoff.txt").write_text(hashed([own_item, *needed.items]), "utf-8")
    (pip,) = wheels.glob("pip-*.whl")
    return needed.left_out, f"wheels/{pip.name}"


def _newest_tried(
    there: Target, requirements: Sequence[str], without: frozenset[str], listener: BuildListener
) -> Needed:
    """Choose the versions that run here, or the index's newest where it lacks one for there."""
    here = {
        normal(one.metadata["Name"]): one.version
        for one in importlib.metadata.distributions()
        if one.metadata["Name"]
    }
    here.pop("bakeoff", None)
    try:
        return there.plan_without(requirements, here, without)
    except NotOffered:
        listener.say(
            "The package index lacks a version that this Bakeoff runs with; the newest versions "
            "are taken instead."
        )
    try:
        return there.plan_without(requirements, {}, without)
    except NotOffered as refusal:
        raise Unavailable(
            f"No package index that pip knows has wheels of Bakeoff's packages for {there}.\n"
            f"    {refusal}\n    What the Python there has by itself: --without NAMES"
        ) from None


def _require_wheels(reference: EnvironmentReference) -> None:
    """Refuse what no wheels make, before anything is fetched."""
    if lock_to_build(reference).sources:
        raise BakeoffError(
            f"{reference} cannot be packed: it is compiled on the machine that uses it, from its "
            "source and with a compiler there."
        )


def _pack_environment(
    reference: EnvironmentReference, order: PackOrder, folder: Path, listener: BuildListener
) -> dict[str, str]:
    lock = lock_to_build(reference)
    there = order.machine.target(lock.python)
    build = BuildOrder(lock, reference, order.device, listener)
    items = build.choose(there.plan, f"has wheels for {there} of what the lock pins")
    build.say(f"{lock.title} for {there.python.tag}: {amount(items)}")
    there.fetch(items, folder / "wheels", _followed(build))
    if there.python.version[:2] != order.machine.python[:2]:
        # A Python so much older may need a pip of its own time.
        there.fetch(there.plan(["pip"], {}), folder / "wheels")
    name = f"environments/{str(reference).translate(_IN_FILE_NAMES)}.txt"
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(hashed(items), "utf-8")
    for file in own_lock_files(lock.name):
        (folder / "locks").mkdir(exist_ok=True)
        shutil.copyfile(file, folder / "locks" / file.name)
    return {
        "reference": str(reference),
        "device": order.device,
        "python": ".".join(map(str, there.python.version[:2])),
        "lock": name,
    }


def _followed(listener: BuildListener) -> Callable[[str], None]:
    """Tell which file pip is at."""

    def follow(line: str) -> None:
        if name := file_fetched(line):
            listener.doing(f"fetching {name}")

    return follow


def _pack_texts(order: PackOrder, folder: Path) -> None:
    for name, file in order.platforms.items():
        (folder / "platforms").mkdir(exist_ok=True)
        shutil.copyfile(file, folder / "platforms" / f"{name}.toml")
    (folder / "data.sh").write_text(order.recipe, "utf-8")
    shutil.copyfile(install.__file__, folder / "install.py")


def _hashed_files(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        name = path.relative_to(folder).as_posix()
        if not install.NAME.fullmatch(name):
            raise BakeoffError(f"{name!r} cannot be packed: its name has other letters than a-z.")
        yield name, {"bytes": path.stat().st_size, "sha256": sha256(path)}
