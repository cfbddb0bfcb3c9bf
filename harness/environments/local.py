"""Build a framework's virtual environment here, go on with one, remove one.

Console scripts carry their absolute path, so an environment is built where it stays; only the
marker, written last, makes it count.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness import locks
from harness.environments import pythons, verify
from harness.environments.build import BuildListener, BuildOrder, build, lock_to_build
from harness.environments.cache import Environment
from harness.environments.from_source import source_build
from harness.environments.from_source.source_recipe import read_source
from harness.environments.lock import EnvironmentReference, Lock, normal
from harness.environments.package_index.download_size import amount
from harness.environments.package_index.pip import Item, file_fetched, installer
from harness.environments.pythons import Python
from harness.errors import BakeoffError, Unavailable
from harness.machine import gpus


@dataclass(frozen=True)
class PackedWheels:
    """Files to build from where no index is asked, each by its hash."""

    folder: Path
    items: tuple[Item, ...]
    python: str
    """The version that they were chosen for, for example 3.12."""


def create(
    reference: EnvironmentReference,
    listener: BuildListener,
    *,
    python: Path | None = None,
    device: str | None = None,
    packed: PackedWheels | None = None,
) -> Environment:
    """Build an environment, go on with an unfinished one, or hand back the one that is there."""
    lock = lock_to_build(reference)
    order = BuildOrder(lock, reference, device or ("gpu" if gpus.has_gpu() else "cpu"), listener)
    serving = lock.python if packed is None else f"=={packed.python}"
    order.doing(f"looking for Python {serving}")
    base = pythons.find(serving, explicit=python, purpose=str(reference))
    fill = partial(_fill, order, base, packed)
    return build(order, base.tag, runs=lambda there: there.is_whole, fill=fill)


def remove(root: Path) -> None:
    """Delete an environment; its marker first, so that a half-deleted one never counts."""
    with Path(f"{root}.lock").open("a") as file:
        if not locks.take(file):
            raise BakeoffError(f"{root.name} is being built by another bakeoff.")
        (root / "environment.json").unlink(missing_ok=True)
        shutil.rmtree(root)


def _fill(order: BuildOrder, base: Python, packed: PackedWheels | None, root: Path) -> list[str]:
    """Make the environment; tell what is wrong with it."""
    _prepare(base, root, order.listener)
    pip = installer(base, root / "bin" / "python", wheels=packed.folder if packed else None)
    if packed is None:
        items = order.choose(
            pip.plan,
            "offers what the lock pins",
            "Is an index reachable? `pip config list` shows which ones pip asks.",
        )
    else:
        items = list(packed.items)
    order.say(f"{_heading(items, order.lock, order.device)}, {amount(items)}")
    numbers = itertools.count(1)

    def follow(line: str) -> None:
        if name := file_fetched(line):
            order.doing(f"fetching {next(numbers)}/{len(items)} {name}")
        elif line.startswith("Installing "):
            order.doing(f"installing {len(items)} packages")

    pip.install(items, root, follow)
    for name in order.lock.sources:
        framework = order.reference.framework
        order.say(
            source_build.add(read_source(name), framework, (root, base.tag), pip, order.doing)
        )
    order.doing(f"importing {', '.join(order.lock.imports)}")
    complaint = verify.import_complaint(root / "bin" / "python", order.lock)
    return [] if complaint is None else [f"it does not import: {complaint}"]


def _prepare(base: Python, root: Path, listener: BuildListener) -> None:
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


def _heading(items: list[Item], lock: Lock, device: str) -> str:
    build = f" ({device} build)" if lock.choices else ""
    return f"{lock.title} {lock.version({normal(one.name): one.version for one in items})}{build}"
