"""Install what an archive holds on a machine that has Bakeoff: environments, locks, profiles."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from harness import plugins
from harness.environments import local
from harness.environments.build import BuildListener
from harness.environments.cache import Environment
from harness.environments.lock import EnvironmentReference
from harness.environments.offline import archive
from harness.environments.offline.archive import Opened
from harness.environments.offline.lock_text import read_lock
from harness.errors import BakeoffError, UsageError
from harness.store.files import write_whole
from harness.store.typed import read


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
        try:
            environments = read(_Environments, it.manifest).environments
        except ValueError as problem:
            raise BakeoffError(f"{path} is damaged: {problem}.") from None
        _bring(it, "locks", "environments", listener)
        platforms = _bring(it, "platforms", "platforms", listener)
        built = tuple(_build(one, it, listener, python) for one in environments)
        return Unpacked(here, built, platforms, it.text("data.sh"))


def _build(
    one: PackedEnvironment, it: Opened, listener: BuildListener, python: Path | None
) -> Environment:
    wheels = {
        facts["sha256"]: (it.folder / name).as_uri() for name, facts in it.below("wheels").items()
    }
    items = read_lock(it.text(one.lock), wheels)
    source = local.PackedWheels(it.folder / "wheels", tuple(items), one.python)
    reference = EnvironmentReference.parse(one.reference)
    return local.create(reference, listener, python=python, device=one.device, packed=source)


def _bring(it: Opened, kind: str, own: str, listener: BuildListener) -> tuple[str, ...]:
    """Copy files to the user's own; one that is there already and differs is left."""
    brought = []
    for name in it.below(kind):
        if name.endswith(".toml"):
            text, place = it.text(name), plugins.user_folder(own) / Path(name).name
            if place.exists() and place.read_text("utf-8", errors="replace") != text:
                listener.say(f"{place} is there already and differs; it is left as it is.")
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(place, text)
            brought.append(str(place))
    return tuple(brought)
