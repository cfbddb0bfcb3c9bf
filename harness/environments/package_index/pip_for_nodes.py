"""Ask the package index on behalf of another machine's Python.

A compute node may be offline and of another architecture: its wheels are chosen and fetched here,
by its tags (PEP 425, PEP 600) and by its markers (PEP 508), and installed there. pip takes tags of
another machine, but evaluates markers for the Python that it runs in; so it is asked for packages
without what they need, and what they need is followed here.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.environments import pythons
from harness.environments.package_index.needed import Needed, with_what_they_need
from harness.environments.package_index.pip import (
    Installer,
    Item,
    hashed,
    installer,
    read_report,
    requirement_files,
)
from harness.environments.pythons import Python
from harness.errors import Unavailable
from harness.ranks.remote_node import RemoteNode
from harness.store.json_text import parse
from harness.store.typed import read

# Runs in any Python since 2.7; what pip's markers ask, and the C library that wheels are built for.
ASK = """
import json, os, platform, sys
base = getattr(sys, "_base_executable", None) or sys.executable
if getattr(sys, "base_prefix", sys.prefix) != sys.prefix and base == sys.executable:
    base = os.path.join(sys.base_prefix, "bin", "python%d.%d" % sys.version_info[:2])
version = platform.python_version()
print(json.dumps({
    "path": base,
    "version": list(sys.version_info[:3]),
    "libc": platform.libc_ver(),
    "markers": {
        "os_name": os.name,
        "sys_platform": sys.platform,
        "platform_machine": platform.machine(),
        "platform_system": platform.system(),
        "platform_release": platform.release(),
        "platform_version": platform.version(),
        "platform_python_implementation": platform.python_implementation(),
        "implementation_name": getattr(sys, "implementation", platform).__dict__.get("name", ""),
        "implementation_version": version,
        "python_full_version": version,
        "python_version": ".".join(version.split(".")[:2]),
    },
}))
"""
# The oldest glibc that any wheel of an architecture was built for (PEP 600).
_OLDEST_GLIBC = {"x86_64": 5, "i686": 5}
_YOUNGER = 17
_LIBC = re.compile(r"\d+\.(\d{1,3})")


@dataclass(frozen=True)
class _There:
    """What a Python of a node says it is."""

    path: str
    version: tuple[int, int, int]
    libc: tuple[str, str]
    markers: Mapping[str, str]


@dataclass(frozen=True)
class _Markers:
    platform_python_implementation: str
    platform_machine: str
    platform_system: str


@dataclass(frozen=True)
class Target:
    """One Python of a node that a launcher reaches."""

    python: Python
    libc: tuple[str, str]
    markers: Mapping[str, str]

    @property
    def tags(self) -> tuple[str, ...]:
        """Name the platforms whose wheels it can use, best first."""
        machine = self.python.machine
        kind, version = self.libc
        numbers = _LIBC.match(version)
        minor = int(numbers[1]) if numbers else 0
        if kind == "glibc":
            oldest = _OLDEST_GLIBC.get(machine, _YOUNGER)
            numbered = [f"manylinux_2_{one}_{machine}" for one in range(minor, oldest - 1, -1)]
            older = [f"manylinux2014_{machine}"] if minor >= _YOUNGER else []
            return (*numbered, *older, f"linux_{machine}")
        return (*(f"musllinux_1_{one}_{machine}" for one in range(5, -1, -1)), f"linux_{machine}")

    def __str__(self) -> str:
        number = ".".join(map(str, self.python.version[:2]))
        return f"Python {number} on {self.python.machine} with {' '.join(self.libc)}"

    def plan(self, requirements: Iterable[str], pins: Mapping[str, str]) -> list[Item]:
        """Choose what it would install; raise NotOffered where the index lacks something."""
        return list(self.plan_without(requirements, pins, frozenset()).items)

    def plan_without(
        self, requirements: Iterable[str], pins: Mapping[str, str], without: frozenset[str]
    ) -> Needed:
        """Choose it but for packages that it has already."""

        def ask(names: Sequence[str]) -> list[Item]:
            with requirement_files(names, pins) as (report, words):
                # before pip 23.1, tags could be given only with a folder; nothing is put there
                folder = ("--target", str(report.parent), "--no-deps")
                self._pip.run(*words, *self._flags, *folder)
                return read_report(report)

        return with_what_they_need(ask, requirements, self.markers, without)

    def fetch(
        self, items: Sequence[Item], folder: Path, on_line: Callable[[str], None] = lambda _: None
    ) -> None:
        """Fetch the files that were chosen, each checked by its hash."""
        with tempfile.TemporaryDirectory(prefix="bakeoff-") as scratch:
            lock = Path(scratch) / "lock.txt"
            lock.write_text(hashed(items), "utf-8")
            words = ("download", "--no-deps", "--require-hashes", *self._flags)
            self._pip.run(*words, "--dest", str(folder), "-r", str(lock), on_line=on_line)

    @property
    def _flags(self) -> tuple[str, ...]:
        number = ".".join(map(str, self.python.version[:2]))
        platforms = (word for tag in self.tags for word in ("--platform", tag))
        return (
            *("--only-binary=:all:", "--python-version", number),
            *("--implementation", "cp", *platforms),
        )

    @property
    def _pip(self) -> Installer:
        own = pythons.inspect(sys.executable)
        assert own is not None, "the interpreter that runs this runs"
        return installer(own, Path(sys.executable))


def find(node: RemoteNode, specifier: str, *, explicit: Path | None, purpose: str) -> Target:
    """Find a node's Python for an environment: the given one, this one, or another on its PATH."""
    named = [f"python3.{minor}" for minor in pythons.minors(specifier)]
    candidates = [str(explicit)] if explicit is not None else [sys.executable, *named, "python3"]
    loop = 'ask=$1; shift; for one; do "$one" -I -S -c "$ask" 2>/dev/null; done; true'
    for line in node.run("sh", "-c", loop, "sh", ASK, *candidates).splitlines():
        try:
            there = read(_There, parse(line.encode(errors="replace")))
            markers = read(_Markers, there.markers)
        except ValueError:
            continue  # what a login script says
        python = Python(
            path=Path(there.path),
            version=there.version,
            implementation=markers.platform_python_implementation.lower(),
            machine=markers.platform_machine,
            system=markers.platform_system.lower(),
        )
        if pythons.satisfies(python.version, specifier):
            return Target(python, there.libc, there.markers)
    raise Unavailable(
        f"{purpose} needs Python {specifier}, and {node} has none of {', '.join(candidates)}.\n"
        "    Name one that is there: --python /path/to/python."
    )
