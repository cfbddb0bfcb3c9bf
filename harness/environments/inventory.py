"""List every framework environment there is or could be, and in which state it is."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from harness.environments import cache, pythons, verify
from harness.environments.cache import Environment
from harness.environments.identity.contents import built_contents
from harness.environments.lock import (
    EnvironmentReference,
    Lock,
    load_lock,
    lock_files,
    missing_program,
)
from harness.environments.outside_programs import installed_version
from harness.environments.package_index.pip import installer
from harness.environments.worker_python import contained, resolve
from harness.environments.worker_variables import worker_variables
from harness.errors import Unavailable, UsageError
from harness.platform.platform import Platform, load_platform
from harness.units import listed

_GONE = "its Python is gone; build it again"

State = Literal["ready", "not built", "unfinished", "broken", "old", "unavailable", "unchecked"]


@dataclass(frozen=True)
class PackageEntry:
    """One line of ``bakeoff env list``."""

    name: str
    title: str
    state: State
    detail: str
    """Why it is in this state, or what to do about it; may be empty."""
    version: str | None = None
    device: str | None = None
    python: Path | None = None
    """The interpreter that workers start with."""
    python_version: str | None = None
    size_bytes: int | None = None
    path: Path | None = None
    used_by: tuple[str, ...] = ()
    named_by: str = ""
    """The platform or the variable that says where it is, where Bakeoff did not build it."""


def inventory(platform: Platform | None = None) -> list[PackageEntry]:
    """List what the locks describe, then what lies on the disk and no lock describes any more.

    Where a platform points elsewhere, that is looked at; without one, this machine's counts.
    """
    if platform is None or platform.is_simulated:  # which starts nothing anywhere
        platform = load_platform()
    locks = [load_lock(name) for name in lock_files()]
    entries = []
    claimed: set[Path] = set()
    for lock in locks:
        there = platform.framework(lock.name)
        is_given = there.interpreter is not None or bool(there.modules)
        if there.container is not None:
            entries.append(_contained(lock, platform))
        if is_given or not (lock.is_built or there.container):
            entries.append(_as_is(lock, platform))
        for entry in _built(lock, locks, platform):
            if (is_given or there.container) and entry.path is None:
                continue  # nobody needs to build it
            entries.append(entry)
            claimed.update([entry.path] if entry.path else [])
    return entries + [_left_over(folder) for folder in cache.folders() if folder not in claimed]


def check(reference: EnvironmentReference, environment: Environment) -> list[str]:
    """Compare a finished environment with its lock, its own records and its framework's word."""
    if not environment.is_whole:
        return [_GONE]
    lock = load_lock(reference.lock)
    device = "cpu" if environment.device == "any" else environment.device
    found = verify.packages(environment.root)
    faults, _ = verify.differences(lock, reference, device, found)
    faults += verify.damage(environment.root)
    edited = built_contents(environment.root).edited
    faults += [f"not as it was installed: {listed(edited)}"] if edited else []
    base = pythons.inspect(environment.executable)
    if base is None:
        return [*faults, "its Python does not run; build it again"]
    faults += installer(base, environment.executable).complaints()
    complaint = verify.import_complaint(environment.executable, lock)
    return faults if complaint is None else [*faults, f"it does not import: {complaint}"]


def owned(reference: EnvironmentReference) -> list[Path]:
    """List the folders that belong to a reference, of every state; refuse a borrowed one."""
    lock = load_lock(reference.lock)
    if lock.folder:
        raise UsageError(
            f"{reference} uses the environment of {lock.folder}; name that one instead."
        )
    stem = cache.place(lock, reference, "", "").name.rpartition("-")[0]
    return [one for one in cache.folders() if one.name.rpartition("-")[0] == stem]


def _built(lock: Lock, locks: list[Lock], platform: Platform) -> list[PackageEntry]:
    plain = EnvironmentReference.parse(lock.name)
    users = tuple(one.name for one in locks if lock.name in (one.name, one.folder))
    entries = []
    for environment in cache.finished():
        reference = EnvironmentReference.parse(environment.reference)
        borrowed = environment.reference != lock.name and lock.folder == reference.lock
        if reference.lock != lock.name and not borrowed:
            continue
        device = "cpu" if environment.device == "any" else environment.device
        if not set(reference.groups) <= lock.groups.keys():
            continue
        if cache.content_hash(lock, reference, device) != environment.content:
            continue
        entry = _finished(lock, environment, users, platform)
        entries.append(replace(entry, name=lock.name) if borrowed else entry)
    if lock.is_built and not any(entry.name == lock.name for entry in entries):
        cure = f"bakeoff env create {lock.folder or lock.name}"
        entries.insert(0, PackageEntry(str(plain), lock.title, "not built", cure))
    return entries


def _finished(
    lock: Lock, environment: Environment, users: tuple[str, ...], platform: Platform
) -> PackageEntry:
    whole = environment.is_whole
    lacking = _lacking(lock, platform)
    return PackageEntry(
        name=environment.reference,
        title=lock.title,
        state="broken" if not whole else "unavailable" if lacking else "ready",
        detail="; ".join(filter(None, (lacking, *environment.notes))) if whole else _GONE,
        version=lock.version(environment.packages),
        device=environment.device,
        python=environment.executable,
        python_version=environment.python.split("-")[1],
        size_bytes=environment.size_bytes,
        path=environment.root,
        used_by=users,
    )


def _as_is(lock: Lock, platform: Platform) -> PackageEntry:
    """Ask what is used as it is: the framework imports, or its program says who it is."""
    named_by = _named_by(lock, platform)
    entry = PackageEntry(
        lock.name, lock.title, "ready", "", used_by=(lock.name,), named_by=named_by
    )
    try:
        found = resolve(lock.name, platform)
        answers = [installed_version(program, found.env) for program in lock.programs]
        framework = verify.imported(found.argv, lock.imports, found.env)
    except Unavailable as problem:
        words = [line.strip() for line in str(problem).splitlines()]
        state: State = "broken" if named_by else "unavailable"
        return replace(entry, state=state, detail=" ".join(words[:2]))
    return replace(
        entry,
        version=next(filter(None, (*answers, *framework.versions)), None),
        python=Path(found.argv[0]),
        python_version=framework.python,
    )


def _contained(lock: Lock, platform: Platform) -> PackageEntry:
    """Describe an image; entering it could fetch it, so only a check does."""
    entry = PackageEntry(
        lock.name, lock.title, "unchecked", "", used_by=(lock.name,), named_by=platform.name
    )
    try:
        return replace(entry, detail=contained(lock.name, platform).description)
    except Unavailable as problem:
        return replace(entry, state="broken", detail=str(problem))


def _named_by(lock: Lock, platform: Platform) -> str:
    """Say who names the interpreter or the program: the platform, or a variable of this process."""
    stated = platform.variables(lock.name)
    variables = [lock.variable, *(program.variable for program in lock.programs)]
    # What is said of a framework holds for its variants too, whether it has them or not.
    own = platform.frameworks.get(lock.name)
    if (own is not None and (own.interpreter or own.modules)) or stated.keys() & {*variables}:
        return platform.name
    return next((name for name in variables if name and os.environ.get(name)), "")


def _lacking(lock: Lock, platform: Platform) -> str:
    if not lock.programs:
        return ""
    try:
        given = worker_variables(EnvironmentReference.parse(lock.name), platform, lock)
    except Unavailable as problem:
        return str(problem).splitlines()[0]
    program = missing_program(lock, given.env)
    return f"no {program.name}: {program.cure}" if program else ""


def _left_over(folder: Path) -> PackageEntry:
    environment = cache.read(folder)
    lock, *groups = folder.name.rpartition("-")[0].split("+")
    name = f"{lock}[{','.join(groups)}]" if groups else lock
    if environment is None:
        cure = f"go on with: bakeoff env create {shlex.quote(name)}"
        size = verify.disk_bytes(folder)
        return PackageEntry(name, name, "unfinished", cure, size_bytes=size, path=folder)
    return PackageEntry(
        name=environment.reference,
        title=name,
        state="old",
        detail="no lock describes it any more; bakeoff env remove --old",
        device=environment.device,
        python=environment.executable,
        python_version=environment.python.split("-")[1],
        size_bytes=environment.size_bytes,
        path=folder,
    )
