"""List every framework environment there is or could be, and in which state it is."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.environments import cache, pythons, verify
from harness.environments.cache import Environment
from harness.environments.lock import (
    EnvironmentReference,
    Lock,
    load_lock,
    lock_files,
    missing_program,
)
from harness.environments.package_index.pip import installer
from harness.errors import Unavailable, UsageError

_GONE = "its Python is gone; build it again"

State = Literal["ready", "not built", "unfinished", "broken", "old", "unavailable"]


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


def inventory() -> list[PackageEntry]:
    """List what the locks describe, then what lies on the disk and no lock describes any more."""
    locks = [load_lock(name) for name in lock_files()]
    entries = []
    claimed: set[Path] = set()
    for lock in locks:
        if not lock.is_built:
            entries.append(_as_is(lock))
        for entry in _built(lock, locks):
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
    base = pythons.inspect(environment.executable)
    if base is None:
        return [*faults, "its Python does not run; build it again"]
    faults += installer(base, environment.executable).complaints()
    complaint = verify.import_complaint(environment.executable, lock.imports)
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


def _built(lock: Lock, locks: list[Lock]) -> list[PackageEntry]:
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
        entries.append(_finished(lock, environment, users, borrowed=borrowed))
    if lock.is_built and not any(entry.name == lock.name for entry in entries):
        cure = f"bakeoff env create {lock.folder or lock.name}"
        entries.insert(0, PackageEntry(str(plain), lock.title, "not built", cure))
    return entries


def _finished(
    lock: Lock, environment: Environment, users: tuple[str, ...], *, borrowed: bool
) -> PackageEntry:
    whole = environment.is_whole
    return PackageEntry(
        name=lock.name if borrowed else environment.reference,
        title=lock.title,
        state="broken" if not whole else "unavailable" if _lacking(lock) else "ready",
        detail="; ".join(filter(None, (_lacking(lock), *environment.notes))) if whole else _GONE,
        version=lock.version(environment.packages),
        device=environment.device,
        python=environment.executable,
        python_version=environment.python.split("-")[1],
        size_bytes=environment.size_bytes,
        path=environment.root,
        used_by=users,
    )


def _as_is(lock: Lock) -> PackageEntry:
    path: Path | None = None
    reason = _lacking(lock)
    if lock.variable is not None:
        path = Path(os.environ.get(lock.variable, ""))
        if not os.access(path, os.X_OK) or path.is_dir():
            path, reason = None, f"{lock.variable} must name its interpreter"
    else:
        try:
            path = pythons.find(lock.python, purpose=lock.name).path
        except Unavailable as error:
            reason = str(error).splitlines()[0]
    state: State = "unavailable" if reason else "ready"
    return PackageEntry(lock.name, lock.title, state, reason, python=path, used_by=(lock.name,))


def _lacking(lock: Lock) -> str:
    program = missing_program(lock, os.environ)
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
