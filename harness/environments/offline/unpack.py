"""Install what an archive holds on a machine that has Bakeoff: environments, locks, profiles."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from harness import plugins
from harness.environments import local
from harness.environments.build import BuildListener
from harness.environments.cache import Environment
from harness.environments.lock import DEVICES, EnvironmentReference
from harness.environments.offline import archive
from harness.environments.offline.archive import Opened
from harness.environments.offline.install import Refused
from harness.environments.offline.lock_text import read_lock
from harness.errors import BakeoffError, UsageError
from harness.store.files import write_whole
from harness.store.typed import read

_PYTHON = re.compile(r"3\.[0-9]{1,2}")


@dataclass(frozen=True)
class PackedEnvironment:
    """One environment of an archive."""

    reference: str
    device: str
    python: str
    lock: str


@dataclass(frozen=True)
class _Environments:
    environments: tuple[PackedEnvironment, ...]


@dataclass(frozen=True)
class Unpacked:
    """What an archive brought."""

    bakeoff: str
    environments: tuple[Environment, ...]
    platforms: tuple[str, ...]
    recipe: str
    """How its data sets are made."""


def unpack(path: Path, listener: BuildListener, *, python: Path | None = None) -> Unpacked:
    """Hold an archive to its hashes, then build its environments from its wheels alone."""
    if not path.exists():
        raise UsageError(f"{path}: there is no such file.")
    listener.doing(f"checking {path}")
    with archive.opened(path) as it:
        here = metadata.version("bakeoff")
        if it.manifest["bakeoff"] != here:
            raise BakeoffError(
                f"{path} is of Bakeoff {it.manifest['bakeoff']}, and this is {here}: their locks "
                "may differ.\n    Install the Bakeoff that it holds: unpack it, then run its "
                "install.py."
            )
        # All that it says is read, and refused, before anything of it is brought.
        environments = _environments(it)
        locks, profiles = (_files(it, kind) for kind in ("locks", "platforms"))
        recipe = it.text("data.sh")
        _bring(locks, "environments", listener)
        brought = _bring(profiles, "platforms", listener)
        built = tuple(
            local.create(
                EnvironmentReference.parse(one.reference),
                listener,
                python=python,
                device=one.device,
                packed=wheels,
            )
            for one, wheels in environments
        )
        return Unpacked(here, built, brought, recipe)


def _environments(it: Opened) -> list[tuple[PackedEnvironment, local.PackedWheels]]:
    """Read what is to be built, each with the wheels that it is built from."""
    try:
        told = read(_Environments, it.manifest).environments
    except ValueError as problem:
        raise Refused(f"it is damaged: {problem}") from None
    addresses = {
        facts["sha256"]: (it.folder / name).as_uri() for name, facts in it.below("wheels").items()
    }
    found = []
    for one in told:
        _check(one)
        items = tuple(read_lock(it.text(one.lock), addresses))
        found.append((one, local.PackedWheels(it.folder / "wheels", items, one.python)))
    return found


def _check(one: PackedEnvironment) -> None:
    try:
        EnvironmentReference.parse(one.reference)
    except UsageError as problem:
        raise Refused(str(problem)) from None
    if one.device not in DEVICES:
        raise Refused(
            f"{one.reference} is for {one.device!r}, which is neither {' nor '.join(DEVICES)}"
        )
    if not _PYTHON.fullmatch(one.python):
        raise Refused(f"{one.reference}: {one.python!r} is no version of Python like 3.12")


def _files(it: Opened, kind: str) -> dict[str, str]:
    """Read the texts of one of its folders, by their own names."""
    return {Path(name).name: it.text(name) for name in it.below(kind) if name.endswith(".toml")}


def _bring(texts: Mapping[str, str], own: str, listener: BuildListener) -> tuple[str, ...]:
    """Copy files to the user's own; one that is there already and differs is left."""
    brought = []
    for name, text in texts.items():
        place = plugins.user_folder(own) / name
        if place.exists() and place.read_text("utf-8", errors="replace") != text:
            listener.say(f"{place} is there already and differs; it is left as it is.")
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, text)
        brought.append(str(place))
    return tuple(brought)
