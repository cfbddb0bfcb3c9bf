"""This file builds a framework's virtual environment, goes on with an unfinished one, removes one.

Console scripts carry their absolute path, so an environment is built where it stays; only the
marker, written last, makes it count.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from harness.errors import BakeoffError, Unavailable
from harness.run import inspection, interpreter, shelf, source
from harness.run.installer import Installer, Item, NotOffered, installer
from harness.run.interpreter import Python
from harness.run.lock import Lock, Reference, load_lock, normal
from harness.run.recipe import read_source
from harness.run.shelf import Environment
from harness.run.wheels import amount, size


class Listener(Protocol):
    """Who is told how the building goes."""

    def say(self, text: str) -> None:
        """Show a sentence that stays."""

    def doing(self, text: str) -> None:
        """Show what goes on right now; the next call replaces it."""


def create(
    reference: Reference,
    listener: Listener,
    *,
    python: Path | None = None,
    device: str | None = None,
) -> Environment:
    """Build an environment, go on with an unfinished one, or hand back the one that is there."""
    lock = load_lock(reference.lock)
    if not lock.is_built:
        raise BakeoffError(f"{reference}: there is nothing to build; a Python is used as it is.")
    device = device or ("gpu" if shelf.has_gpu() else "cpu")
    listener.doing(f"{reference}: looking for Python {lock.python}")
    base = interpreter.find(lock.python, explicit=python, purpose=str(reference))
    content = shelf.content_hash(lock, reference, device)
    root = shelf.place(lock, reference, content, base.tag)
    root.parent.mkdir(parents=True, exist_ok=True)
    with held(root, reference, listener):
        there = shelf.read(root)
        if there is not None and there.is_whole:
            listener.say(f"{reference}: already built, {root}")
            return there
        started = time.monotonic()
        _prepare(base, root, listener)
        notes = _fill(lock, reference, device, base, root, listener)
        environment = Environment(
            reference=str(lock.owner(reference)),
            device=device if lock.choices else "any",
            content=content,
            python=base.tag,
            packages=inspection.packages(root),
            notes=tuple(notes),
            size_bytes=inspection.disk_bytes(root),
            seconds=round(time.monotonic() - started, 1),
            created_wall_ns=time.time_ns(),
            root=root,
        )
        shelf.write(environment)
    listener.say(
        f"{reference}: done in {environment.seconds:.0f} s, {size(environment.size_bytes)}, {root}"
    )
    return environment


def remove(root: Path) -> None:
    """Delete an environment; its marker first, so that a half-deleted one never counts."""
    with Path(f"{root}.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BakeoffError(f"{root.name} is being built by another bakeoff.") from error
        (root / "environment.json").unlink(missing_ok=True)
        shutil.rmtree(root)


def _prepare(base: Python, root: Path, listener: Listener) -> None:
    damaged = (root / "environment.json").exists()
    if not damaged and os.access(root / "bin" / "python", os.X_OK):
        listener.say(f"{root.name}: going on where an earlier attempt stopped")
        return
    shutil.rmtree(root, ignore_errors=True)
    answer = subprocess.run(
        [str(base.path), "-I", "-m", "venv", "--without-pip", str(root)],
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        raise Unavailable(
            f"{base} cannot make a virtual environment:\n    {answer.stderr.strip()}\n"
            "    On Debian and Ubuntu: apt-get install python3-venv."
        )


def _fill(
    lock: Lock, reference: Reference, device: str, base: Python, root: Path, listener: Listener
) -> list[str]:
    pip = installer(base, root / "bin" / "python")
    listener.doing(f"{reference}: asking the package index")
    items = _choose(pip, lock, reference, device)
    fetched = any(not item.url.startswith("file:") for item in items)
    what = amount(items, pip.cache() if fetched else None)
    listener.say(f"{reference}: {_heading(items, lock, device)}, {what}")
    seen: list[str] = []

    def said(line: str) -> None:
        verb, _, rest = line.partition(" ")
        if verb in ("Collecting", "Processing"):
            seen.append(rest)
            listener.doing(f"{reference}: fetching {len(seen)}/{len(items)} {rest.split()[0]}")
        elif verb == "Installing":
            listener.doing(f"{reference}: installing {len(items)} packages")

    pip.install(items, root / "create.log", said)
    for name in lock.sources:
        built = source.add(
            read_source(name),
            reference.framework,
            (root, base.tag),
            pip,
            lambda text: listener.doing(f"{reference}: {text}"),
        )
        listener.say(f"{reference}: {built}")
    listener.doing(f"{reference}: importing {', '.join(lock.imports)}")
    faults, notes = inspection.differences(lock, reference, device, inspection.packages(root))
    complaint = inspection.import_complaint(root / "bin" / "python", lock.imports)
    if complaint is not None:
        faults.append(f"it does not import: {complaint}")
    if faults:
        raise Unavailable(f"{reference} was installed, but " + "; ".join(faults))
    return notes


def _choose(pip: Installer, lock: Lock, reference: Reference, device: str) -> list[Item]:
    refusals = []
    for requirements in lock.requirements(reference, device):
        try:
            return pip.plan(requirements, lock.pinned(reference))
        except NotOffered as refusal:
            refusals.append(str(refusal))
    raise Unavailable(
        f"{reference}: no package index that pip knows offers what the lock pins.\n    "
        + "\n    ".join(refusals)
        + "\n    Is an index reachable? `pip config list` shows which ones pip asks."
    )


def _heading(items: list[Item], lock: Lock, device: str) -> str:
    build = f" ({device} build)" if lock.choices else ""
    return f"{lock.title} {lock.version({normal(one.name): one.version for one in items})}{build}"


@contextlib.contextmanager
def held(root: Path, reference: Reference, listener: Listener) -> Iterator[None]:
    """Keep others from building the same environment; wait for one that does."""
    with Path(f"{root}.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            listener.doing(f"{reference}: another bakeoff is building it, waiting for that")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
