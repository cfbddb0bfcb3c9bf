"""Read the lock of a framework environment: which Python, which packages, pinned how.

A lock lies in ``harness/environments/`` or in the user's ``~/.config/bakeoff/environments/``. A
lock without packages describes an interpreter that is used as it is.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import harness.environments
from harness import plugins
from harness.environments.from_source.source_recipe import read_source
from harness.errors import BakeoffError, Fault, FaultyFile, UsageError, nearest

DEVICES = ("cpu", "gpu")

_REFERENCE = re.compile(
    r"^(?P<framework>[a-z][a-z0-9_-]*)(?:@(?P<variant>[a-z0-9][a-z0-9._-]*))?"
    r"(?:\[(?P<groups>[a-z0-9_-]+(?:,[a-z0-9_-]+)*)\])?$"
)
_KEYS = {
    *("title", "python", "variable", "imports", "shown", "same_as", "packages", "pins"),
    *("environment", "groups", "programs", "extends", "sources", *DEVICES),
}


@dataclass(frozen=True)
class EnvironmentReference:
    """What a study writes: ``torch``, ``tensorflow@1.15``, ``torch[hdf5]``."""

    framework: str
    variant: str | None = None
    groups: tuple[str, ...] = ()

    @staticmethod
    def parse(text: str) -> EnvironmentReference:
        """Read one, or refuse it with an example."""
        match = _REFERENCE.match(text)
        if match is None:
            raise UsageError(
                f"'{text}' names no framework environment. Write a framework, a variant after @ "
                "and groups in brackets: torch, tensorflow@1.15, torch[hdf5]."
            )
        groups = match["groups"].split(",") if match["groups"] else ()
        return EnvironmentReference(
            match["framework"], match["variant"], tuple(sorted(set(groups)))
        )

    @property
    def lock(self) -> str:
        """The name of the lock file, without its suffix."""
        return self.framework if self.variant is None else f"{self.framework}@{self.variant}"

    def __str__(self) -> str:
        groups = f"[{','.join(self.groups)}]" if self.groups else ""
        return self.lock + groups


@dataclass(frozen=True)
class Program:
    """Something an environment needs and no package index carries."""

    name: str
    why: str
    cure: str
    variable: str | None = None
    says: str = ""
    """A word that its ``--version`` prints; a program that does not is another."""


@dataclass(frozen=True)
class Lock:
    """The content of one lock file."""

    name: str
    title: str
    python: str = ""
    """Which Pythons serve, for example ``>=3.7,<3.8``."""
    variable: str | None = None
    """An environment variable that names the interpreter."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that every worker in it sees."""
    imports: tuple[str, ...] = ()
    packages: Mapping[str, str] = field(default_factory=dict)
    pins: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    choices: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    """Per device, sets of requirements in order of preference; empty where the device is all one"""
    programs: tuple[Program, ...] = ()
    shown: tuple[str, ...] = ()
    """The distributions whose version people know it by; the first that is installed counts."""
    sources: tuple[str, ...] = ()
    """What is built here from its source, with the rest in place (``source.py``)."""
    folder: str = ""
    """Whose environments serve: its own name, or that of the lock it equals."""

    @property
    def is_built(self) -> bool:
        """Whether there is anything to install."""
        return bool(self.packages or self.choices)

    def is_built_for(self, reference: EnvironmentReference) -> bool:
        """Whether anything is to be installed for it: a bare Python's groups are."""
        return self.is_built or bool(reference.groups)

    def requirements(
        self, reference: EnvironmentReference, device: str
    ) -> tuple[tuple[str, ...], ...]:
        """List the sets of requirements to try, best first."""
        fixed = {**self.packages}
        for group in reference.groups:
            fixed.update(self._group(group))
        always = tuple(f"{name}=={version}" for name, version in sorted(fixed.items()))
        return tuple((*choice, *always) for choice in self.choices.get(device, ((),)))

    def pinned(self, reference: EnvironmentReference) -> dict[str, str]:
        """Give the version that each package must have, the chosen framework's included."""
        built = (read_source(name) for name in self.sources)
        versions = {one.distribution: one.version for one in built}
        versions |= {**self.pins, **self.packages}
        for group in reference.groups:
            versions.update(self._group(group))
        for sets in self.choices.values():
            for requirement in (one for choice in sets for one in choice):
                name, _, version = requirement.partition("==")
                versions.setdefault(normal(name.partition("[")[0]), version.partition("+")[0])
        return {normal(name): version for name, version in versions.items()}

    def owner(self, reference: EnvironmentReference) -> EnvironmentReference:
        """Name the environment as the lock does that it was built from."""
        return replace(
            EnvironmentReference.parse(self.folder or self.name), groups=reference.groups
        )

    def version(self, packages: Mapping[str, str]) -> str:
        """Pick the framework's own version out of what is installed; empty where there is none."""
        return next((packages[name] for name in self.shown if name in packages), "")

    def content(self, reference: EnvironmentReference, device: str) -> dict[str, Any]:
        """Give what decides whether a built environment is still the one described."""
        built = {name: read_source(name).digest for name in self.sources}
        return {
            **({"sources": built} if built else {}),
            "folder": self.folder or self.name,
            "python": self.python,
            "requirements": [list(choice) for choice in self.requirements(reference, device)],
            "pins": self.pinned(reference),
            "device": device if self.choices else "any",
        }

    def _group(self, group: str) -> Mapping[str, str]:
        if group not in self.groups:
            known = ", ".join(sorted(self.groups)) or "none"
            raise UsageError(
                f"The environment {self.name} has no group '{group}'."
                f"{nearest(group, self.groups)}\n    Known: {known}."
            )
        return self.groups[group]


def missing_program(lock: Lock, environ: Mapping[str, str]) -> Program | None:
    """Find the first program that a lock needs and that is not here."""
    for program in lock.programs:
        named = environ.get(program.variable or "") or program.name
        if shutil.which(named, path=environ.get("PATH")) is None:
            return program
    return None


def normal(name: str) -> str:
    """Write a distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def lock_files() -> dict[str, Path]:
    """Find every lock; a user's own wins over a shipped one."""
    found: dict[str, Path] = {}
    shipped = Path(harness.environments.__path__[0])
    for folder in (shipped, plugins.user_folder("environments")):
        found.update((file.name.removesuffix(".toml"), file) for file in folder.glob("*.toml"))
    return dict(sorted(found.items()))


def own_lock_files(name: str) -> list[Path]:
    """List the user's own files that a lock is read from; none where it ships with Bakeoff."""
    found = []
    files, waiting = lock_files(), [name]
    while waiting:
        file = files.get(waiting.pop())
        if file is None or file in found or file.parent != plugins.user_folder("environments"):
            continue
        found.append(file)
        table = tomllib.loads(file.read_text("utf-8"))
        waiting += [table[key] for key in ("extends", "same_as") if key in table]
    return found


def load_lock(name: str) -> Lock:
    """Read one lock by its name."""
    files = lock_files()
    if name not in files:
        raise UsageError(
            f"There is no framework environment called '{name}'.{nearest(name, files)}\n"
            f"    Known: {', '.join(files)}."
        )
    lock = parse_lock(name, files[name])
    if lock.folder and not lock.is_built:
        model = load_lock(lock.folder)
        folder = model.folder or model.name
        return replace(
            model,
            name=name,
            title=lock.title,
            imports=lock.imports,
            shown=lock.shown,
            folder=folder,
        )
    return lock


def variables_of_locks() -> frozenset[str]:
    """Name the variables that say where a framework's interpreter or program lies."""
    found: set[str] = set()
    for name in lock_files():
        try:
            lock = load_lock(name)
        except BakeoffError:
            continue  # whoever asks for that environment is told
        named = (lock.variable, *(program.variable for program in lock.programs))
        found.update(variable for variable in named if variable)
    return frozenset(found)


def parse_lock(name: str, file: Path) -> Lock:
    """Read a lock from its file; every fault at once."""
    try:
        table = tomllib.loads(file.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise FaultyFile([Fault(file.name, None, "", f"no valid TOML: {error}")]) from error
    faults = [
        Fault(file.name, None, key, f"unknown key.{nearest(key, _KEYS)}", tuple(sorted(_KEYS)))
        for key in table.keys() - _KEYS
    ]
    choices = {
        device: tuple(tuple(choice) for choice in table.get(device, {}).get("choices", ()))
        for device in DEVICES
        if device in table
    }
    loose = [
        requirement
        for sets in choices.values()
        for choice in sets
        for requirement in choice
        if "==" not in requirement
    ]
    faults += [
        Fault(file.name, None, "choices", f"'{requirement}' must be pinned with ==")
        for requirement in loose
    ]
    if faults:
        raise FaultyFile(faults)
    if "extends" in table:
        base = load_lock(table["extends"])
        return replace(
            base,
            name=name,
            title=table.get("title", name),
            environment={**base.environment, **table.get("environment", {})},
            imports=tuple(table.get("imports", base.imports)),
            packages={**base.packages, **table.get("packages", {})},
            pins={**base.pins, **table.get("pins", {})},
            shown=tuple(table.get("shown", base.shown)),
            sources=tuple(table.get("sources", ())),
        )
    try:
        programs = tuple(Program(**program) for program in table.get("programs", ()))
    except TypeError as error:
        raise FaultyFile([Fault(file.name, None, "programs", str(error))]) from error
    return Lock(
        name=name,
        title=table.get("title", name),
        python=table.get("python", ""),
        variable=table.get("variable"),
        environment=table.get("environment", {}),
        imports=tuple(table.get("imports", ())),
        packages=table.get("packages", {}),
        pins=table.get("pins", {}),
        groups=table.get("groups", {}),
        choices=choices,
        programs=programs,
        shown=tuple(table.get("shown", ())),
        folder=table.get("same_as", ""),
    )
