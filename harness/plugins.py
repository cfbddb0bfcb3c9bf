"""Find plug-ins: modules and files in provider packages, importing none of them.

A distribution names its provider packages in entry-point groups such as ``bakeoff.workloads``, one
for each of ``GROUPS``; every module (or, for adapters and platforms, TOML file) in such a package
is a plug-in. Adding one is adding a file.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from harness.errors import Unavailable, UsageError, nearest

OURS = "bakeoff"
GROUPS = ("workloads", "adapters", "launchers", "samplers", "sections", "platforms")
PARTS = {
    "workloads": ("WORKLOAD",),
    "launchers": ("SETTINGS", "launch", "nodes", "reach"),
    "samplers": ("HZ", "BLOCKS", "open"),
    "sections": ("SECTION",),
}
"""What a module of each group that is imported here must hold: constants and functions."""


@dataclass(frozen=True)
class Provider:
    """A package whose folder holds plug-ins, and the distribution that brings it."""

    group: str
    package: str
    origin: str
    folder: Path | None
    problem: str | None


@dataclass(frozen=True)
class Entry:
    """One plug-in: a module by its dotted name, or a TOML file, and why it cannot be used."""

    name: str
    module: str
    origin: str
    path: Path
    problem: str | None = None


@cache
def providers(group: str) -> tuple[Provider, ...]:
    """Give the provider packages of a group such as "workloads", ours first."""
    found = []
    for origin, package in sorted(set(_declared(group)), key=lambda one: (one[0] != OURS, one)):
        folder, problem = _folder(package)
        found.append(Provider(group, package, origin, folder, problem))
    return tuple(found)


def modules(group: str) -> dict[str, Entry]:
    """Give a group's modules by their plug-in names (dashes for underscores), none imported."""
    return _members(group, ".py")


def files(group: str) -> dict[str, Entry]:
    """Give a group's TOML files by their names."""
    return _members(group, ".toml")


def loaded(group: str) -> Iterator[tuple[Entry, Any]]:
    """Import each of a group's modules; one that fails comes with its reason and without module.

    One that lacks a part that its group is read for has failed too.
    """
    for entry in modules(group).values():
        if entry.problem is not None:
            yield entry, None
            continue
        module, problem = _imported(group, entry)
        yield (entry if problem is None else replace(entry, problem=problem)), module


def load(group: str, name: str) -> Any:
    """Import one plug-in; say which there are, or why it does not import."""
    entries = modules(group)
    if name not in entries:
        known = ", ".join(sorted(entries))
        what = group.removesuffix("s")
        raise UsageError(
            f"no {what} is called '{name}'.{nearest(name, entries)}\n    Known: {known}."
        )
    entry = entries[name]
    module, problem = None, entry.problem
    if problem is None:
        module, problem = _imported(group, entry)
    if problem is not None:
        raise Unavailable(f"{name} (from {entry.origin}) cannot be used: {problem}")
    return module


def workload_names() -> tuple[str, ...]:
    """Name every workload there is."""
    return tuple(sorted(modules("workloads")))


def workload(name: str, factors: Mapping[str, Any] | None = None) -> Any:
    """Give a workload by name; ``NETWORK/PATH/PASS`` is a layer of a network, alone.

    With a cell's factors it is the cell's: one of texts has the length that they ask for.
    """
    network, is_of_layer, _ = name.partition("/")
    described = load("workloads", network).WORKLOAD
    sequence = None if factors is None else factors.get("sequence")
    if sequence is None and not is_of_layer:
        return described
    return _derived(described, name, sequence)


def workload_module(name: str) -> str:
    """Name the module that a workload, or the network of a layer, is described in."""
    return modules("workloads")[name.partition("/")[0]].module


def _derived(described: Any, name: str, sequence: int | None) -> Any:
    from harness.worker.network.alone import NoSuchLayer  # what reads has no layers
    from harness.worker.network.asked_workload import asked_workload
    from harness.worker.network.rule import ImpossibleNetwork
    from harness.worker.network.workload import Training

    if not isinstance(described, Training):
        if "/" not in name:
            return described
        raise UsageError(f"{name}: {described.name} is no network, so it has no layers.")
    try:
        return asked_workload(described, name, {"sequence": sequence})
    except ImpossibleNetwork as fault:
        raise UsageError(f"{name} has no form of {sequence} tokens: {fault}.") from fault
    except NoSuchLayer as fault:
        hint = nearest(name, fault.known) or f" There are: {', '.join(fault.known)}."
        raise UsageError(
            f"no workload is called '{name}'.{hint}\n    A layer alone is NETWORK/LAYER/PASS."
        ) from fault


def adapter_files() -> dict[str, Path]:
    """Give the file beside each adapter that says what it can do."""
    return {name: entry.path for name, entry in files("adapters").items() if not entry.problem}


def environment_names() -> tuple[str, ...]:
    """Name the framework environments that Bakeoff has a lock for: torch, tensorflow@1.15 …"""
    folders = (Path(__file__).parent / "environments", user_folder("environments"))
    return tuple(sorted({path.stem for folder in folders for path in folder.glob("*.toml")}))


def user_folder(name: str) -> Path:
    """Name a folder of the user's own: platforms, environments."""
    configuration = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(configuration).expanduser() / "bakeoff" / name


def platform_files(beside: Path | None = None) -> dict[str, Path]:
    """Give every platform profile; a user's own come before the shipped ones of the same name.

    A user's own lie in ``platforms/`` beside the study, in the current folder's ``platforms/`` or
    in ``~/.config/bakeoff/platforms/``.
    """
    folders = [Path("platforms"), user_folder("platforms")]
    if beside is not None:
        folders.insert(0, beside / "platforms")
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.toml")):
            found.setdefault(path.stem, path)
    for name, entry in files("platforms").items():
        if not entry.problem:
            found.setdefault(name, entry.path)
    return found


def _members(group: str, suffix: str) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for provider in providers(group):
        if provider.folder is None:
            name = f"{provider.origin}:{provider.package}"
            found[name] = Entry(name, provider.package, provider.origin, Path(), provider.problem)
            continue
        for stem, path in _listed(provider.folder, suffix):
            name = stem.replace("_", "-") if suffix == ".py" else stem
            module = f"{provider.package}.{stem}"
            problem = None
            if name in found:
                problem = f"the name '{name}' is already taken by {found[name].origin}"
                name = f"{provider.origin}:{name}"
            found[name] = Entry(name, module, provider.origin, path, problem)
    return found


def _listed(folder: Path, suffix: str) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.iterdir()):
        if path.suffix == suffix and not path.name.startswith(("_", ".")):
            yield path.stem, path


def _imported(group: str, entry: Entry) -> tuple[Any, str | None]:
    """Import a module; without it where it fails or lacks a part, but with the reason."""
    try:
        module = importlib.import_module(entry.module)
    except Exception as error:  # noqa: BLE001 a plug-in may fail in any way, and still lists
        return None, f"{type(error).__name__}: {error}"
    lacks = [
        f"no {'constant' if part.isupper() else 'function'} {part}"
        for part in PARTS.get(group, ())
        if not hasattr(module, part)
    ]
    return (None, f"{entry.module} has {', '.join(lacks)}") if lacks else (module, None)


def _folder(package: str) -> tuple[Path | None, str | None]:
    try:
        spec = importlib.util.find_spec(package)
    except Exception as error:  # noqa: BLE001 a parent package may fail in any way, and still lists
        return None, f"{type(error).__name__}: {error}"
    places = spec.submodule_search_locations if spec is not None else None
    if not places:
        return None, f"there is no package called {package}"
    return Path(next(iter(places))), None


def _declared(group: str) -> Iterator[tuple[str, str]]:
    found_ours = False
    for origin, wanted, package in _entry_points():
        found_ours = found_ours or origin == OURS
        if wanted == f"bakeoff.{group}":
            yield origin, package
    if not found_ours:
        raise Unavailable(
            "Bakeoff is not installed in this interpreter, so its parts cannot be found.\n"
            f"    Run `make setup`, or: {sys.executable} -m pip install -e . in the project."
        )


@cache
def _entry_points() -> tuple[tuple[str, str, str], ...]:
    """Read the installed distributions' entry points: (distribution, group, value).

    The format is https://packaging.python.org/specifications/entry-points. Reading it here takes
    1 ms where importing importlib.metadata takes 50.
    """
    found = []
    for folder in sys.path:
        try:
            places = list(os.scandir(folder or "."))
        except OSError:
            continue
        for place in places:
            if not place.name.endswith((".dist-info", ".egg-info")):
                continue
            try:
                text = Path(place, "entry_points.txt").read_text(encoding="utf-8")
            except OSError:
                continue
            if "bakeoff." in text:
                origin = place.name.rpartition(".")[0].partition("-")[0]
                found += [(origin, group, value) for group, value in _sections(text)]
    return tuple(found)


def _sections(text: str) -> Iterator[tuple[str, str]]:
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.strip("[]").strip()
        elif "=" in line and not line.startswith(("#", ";")):
            yield group, line.partition("=")[2].strip()
