"""Find the Pythons of this machine and say what each of them is."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness import commands
from harness.errors import Unavailable, UsageError
from harness.store.json_text import parse
from harness.store.typed import read

# Runs in any Python since 2.7, so that an unsuitable one says so instead of breaking.
_ASK = """
import json, os, platform, sys
base = getattr(sys, "_base_executable", None) or sys.executable
if getattr(sys, "base_prefix", sys.prefix) != sys.prefix and base == sys.executable:
    base = os.path.join(sys.base_prefix, "bin", "python%d.%d" % sys.version_info[:2])
print(json.dumps({
    "path": base,
    "version": list(sys.version_info[:3]),
    "implementation": platform.python_implementation().lower(),
    "machine": platform.machine(),
    "system": platform.system().lower(),
}))
"""
_NEWEST_MINOR = 16


@dataclass(frozen=True)
class Python:
    """One interpreter outside any virtual environment."""

    path: Path
    version: tuple[int, int, int]
    implementation: str
    machine: str
    system: str

    @property
    def tag(self) -> str:
        """What two interpreters must share for one environment to serve both."""
        number = ".".join(map(str, self.version))
        return f"{self.implementation}-{number}-{self.system}-{self.machine}"

    def __str__(self) -> str:
        return f"Python {'.'.join(map(str, self.version))} ({self.path})"


@dataclass(frozen=True)
class _Said:
    path: str
    version: tuple[int, int, int]
    implementation: str
    machine: str
    system: str


def inspect(path: Path | str) -> Python | None:
    """Ask an interpreter what it is; None where it does not answer as one."""
    try:
        answer = commands.run([str(path), "-I", "-S", "-c", _ASK], timeout_s=20)
        said = read(_Said, parse(answer.required().encode(errors="replace")))
    except (Unavailable, ValueError):
        # A pyenv shim without a version behind it, a Python 2, no Python at all: not a candidate.
        return None
    return Python(Path(said.path), said.version, said.implementation, said.machine, said.system)


def satisfies(version: tuple[int, ...], specifier: str) -> bool:
    """Tell whether a version meets every clause of, say, ``>=3.11,<3.15``."""
    for clause in filter(None, (part.strip() for part in specifier.split(","))):
        match = re.fullmatch(r"(>=|<|==)\s*(\d+(?:\.\d+)*)", clause)
        if match is None:
            raise ValueError(f"'{clause}' is not understood; write >=3.11, <3.15 or ==3.7")
        bound = tuple(map(int, match[2].split(".")))
        if match[1] == ">=" and version < bound:
            return False
        if match[1] == "<" and version[: len(bound)] >= bound:
            return False
        if match[1] == "==" and version[: len(bound)] != bound:
            return False
    return True


def find(specifier: str, *, explicit: Path | None = None, purpose: str = "") -> Python:
    """Find the interpreter for an environment: the given one, the harness's own, or another."""
    if explicit is not None:
        python = inspect(explicit)
        if python is None:
            raise UsageError(f"{explicit} is no Python interpreter that runs here.")
        if not satisfies(python.version, specifier):
            raise UsageError(f"{purpose} needs Python {specifier}; {python} is not.")
        return python
    for candidate in _candidates(specifier):
        python = inspect(candidate)
        if python is not None and satisfies(python.version, specifier):
            return python
    newest = minors(specifier)[0]
    raise Unavailable(
        f"{purpose} needs Python {specifier}, and none was found here.\n"
        f"    Install one (pyenv install 3.{newest}, or conda create -n py3{newest} "
        f"python=3.{newest}) and, unless it is python3.{newest} on the PATH, name it: "
        f"export BAKEOFF_PYTHON3{newest}=/path/to/python, or --python /path/to/python."
    )


def _candidates(specifier: str) -> Iterator[str]:
    known = minors(specifier)
    for minor in known:
        named = os.environ.get(f"BAKEOFF_PYTHON3{minor}")
        if named:
            yield named
    if satisfies(sys.version_info[:3], specifier):
        yield sys.executable
    for minor in known:
        on_path = shutil.which(f"python3.{minor}")
        if on_path:
            yield on_path
    root = _pyenv_root()
    if root is not None:
        for minor in known:
            versions = (root / "versions").glob(f"3.{minor}.*/bin/python")
            yield from map(str, sorted(versions, key=_micro, reverse=True))


def minors(specifier: str) -> list[int]:
    """Give the versions 3.N that may meet a specifier, newest first."""
    return [
        minor
        for minor in range(_NEWEST_MINOR, 5, -1)
        if any(satisfies((3, minor, micro), specifier) for micro in (0, 99))
    ]


def _micro(python: Path) -> int:
    digits = re.search(r"3\.\d+\.(\d+)", python.parts[-3])
    return int(digits[1]) if digits else 0


def _pyenv_root() -> Path | None:
    root = os.environ.get("PYENV_ROOT")
    if root:
        return Path(root)
    program = shutil.which("pyenv")
    if program is None:
        home = Path.home() / ".pyenv"
        return home if home.is_dir() else None
    try:
        return Path(commands.run([program, "root"], timeout_s=10).required().strip())
    except Unavailable:
        return None
