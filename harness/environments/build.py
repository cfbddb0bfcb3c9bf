"""Build an environment as its lock says, wherever that is: once, marked when whole."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness import locks
from harness.environments import cache, verify
from harness.environments.cache import Environment
from harness.environments.lock import EnvironmentReference, Lock, load_lock
from harness.environments.package_index.pip import Item, NotOffered
from harness.errors import Unavailable, UsageError
from harness.units import decimal_size


class BuildListener(Protocol):
    """Receives the progress of a build."""

    def say(self, text: str) -> None:
        """Show a sentence that stays."""

    def doing(self, text: str) -> None:
        """Show what goes on right now; the next call replaces it."""


Planner = Callable[[Iterable[str], Mapping[str, str]], list[Item]]
"""Chooses what to install for requirements under pins, or raises NotOffered."""


def lock_to_build(reference: EnvironmentReference) -> Lock:
    """Load a lock; refuse one that only says which Python to use."""
    lock = load_lock(reference.lock)
    if not lock.is_built_for(reference):
        raise UsageError(f"{reference}: there is nothing to build; a Python is used as it is.")
    return lock


@dataclass(frozen=True)
class BuildOrder:
    """What is to be built, for which device, and who is told."""

    lock: Lock
    reference: EnvironmentReference
    device: str
    listener: BuildListener

    def say(self, text: str) -> None:
        """Show a sentence that stays."""
        self.listener.say(f"{self.reference}: {text}")

    def doing(self, text: str) -> None:
        """Show what goes on right now."""
        self.listener.doing(f"{self.reference}: {text}")

    def choose(self, plan: Planner, what: str, cure: str = "") -> list[Item]:
        """Take the first of the lock's choices that an index offers; ``what`` none had."""
        self.doing("asking the package index")
        refusals = []
        for requirements in self.lock.requirements(self.reference, self.device):
            try:
                return plan(requirements, self.lock.pinned(self.reference))
            except NotOffered as refusal:
                refusals.append(str(refusal))
        lines = "\n    ".join((*refusals, *filter(None, [cure])))
        raise Unavailable(f"{self.reference}: no package index that pip knows {what}.\n    {lines}")


def build(
    order: BuildOrder,
    python: str,
    *,
    runs: Callable[[Environment], bool],
    fill: Callable[[Path], list[str]],
    through: str = "",
) -> Environment:
    """Hand back what is there if it runs; else ``fill`` its folder, which tells what is wrong."""
    content = cache.content_hash(order.lock, order.reference, order.device)
    root = cache.place(order.lock, order.reference, content, python)
    root.parent.mkdir(parents=True, exist_ok=True)
    with _held(root, order):
        there = cache.read(root)
        if there is not None and runs(there):
            order.say(f"already built, {root}")
            return there
        started = time.monotonic()
        complaints = fill(root)
        packages = verify.packages(root)
        faults, notes = verify.differences(order.lock, order.reference, order.device, packages)
        if faults or complaints:
            problems = "; ".join(faults + complaints)
            raise Unavailable(f"{order.reference} was installed, but {problems}")
        environment = Environment(
            reference=str(order.lock.owner(order.reference)),
            device=order.device if order.lock.choices else "any",
            content=content,
            python=python,
            packages=packages,
            notes=tuple(notes),
            size_bytes=verify.disk_bytes(root),
            seconds=round(time.monotonic() - started, 1),
            created_wall_ns=time.time_ns(),
            root=root,
            through=through,
        )
        cache.write(environment)
    order.say(
        f"done in {environment.seconds:.0f} s, {decimal_size(environment.size_bytes)}, {root}"
    )
    return environment


@contextlib.contextmanager
def _held(root: Path, order: BuildOrder) -> Iterator[None]:
    """Keep others from building the same environment; wait for one that does."""
    with Path(f"{root}.lock").open("a") as file:
        if not locks.take(file):
            order.doing("another bakeoff is building it, waiting for that")
            locks.take(file, wait=True)
        yield
