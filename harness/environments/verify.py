"""Compare an environment with its lock: what is installed, is it whole, does it load."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from harness import commands
from harness.commands import Unanswered, signal_text
from harness.environments.lock import EnvironmentReference, Lock, normal
from harness.errors import Unavailable
from harness.worker.last_words import last_words

_IMPORT = """
import importlib, json, sys
if sys.path[0] == "":  # the current folder
    del sys.path[0]
sys.stdout.write("\\n" + json.dumps([sys.version.split()[0]]) + "\\n")
sys.stdout.flush()
modules = [importlib.import_module(name) for name in sys.argv[1:]]
versions = [str(getattr(module, "__version__", "")) for module in modules]
sys.stdout.write("\\n" + json.dumps([sys.version.split()[0], versions]))
"""
_IMPORT_TIMEOUT_S = 300


@dataclass(frozen=True)
class Imported:
    """What an interpreter said when it had imported a framework."""

    python: str
    versions: tuple[str, ...]


def packages(root: Path) -> dict[str, str]:
    """Read what is installed in an environment from its files; nothing in it is started."""
    found = {
        normal(one.metadata["Name"]): one.version
        for one in _distributions(root)
        if one.metadata["Name"]
    }
    return dict(sorted(found.items()))


def differences(
    lock: Lock, reference: EnvironmentReference, device: str, found: dict[str, str]
) -> tuple[list[str], list[str]]:
    """Tell what contradicts the lock, and what the lock merely does not mention."""
    pinned = lock.pinned(reference)
    faults = [
        f"{name} is {version}, the lock says {pinned[name]}"
        for name, version in found.items()
        if name in pinned and version.partition("+")[0] != pinned[name].partition("+")[0]
    ]
    sets = [
        {normal(one.partition("==")[0].partition("[")[0]) for one in requirements}
        for requirements in lock.requirements(reference, device)
    ]
    if not any(names <= found.keys() for names in sets):
        missing = min((sorted(names - found.keys()) for names in sets), key=len)
        faults.append(f"not installed: {', '.join(missing)}")
    notes = [
        f"{name} {version} is not pinned by the lock"
        for name, version in found.items()
        if name not in pinned
    ]
    return faults, notes


def damage(root: Path) -> list[str]:
    """Name the packages some of whose files are missing."""
    faults = []
    for one in _distributions(root):
        bad = [
            file
            for file in one.files or ()
            if file.size is not None and not Path(str(file.locate())).exists()
        ]
        if one.files is None or bad:
            example = f", for example {bad[0]}" if bad else ""
            faults.append(f"{one.metadata['Name']}: {len(bad)} files missing{example}")
    return sorted(faults)


def imported(
    argv: Sequence[str],
    names: Sequence[str],
    env: Mapping[str, str] | None = None,
    *,
    private: str = "",
) -> Imported:
    """Import a framework by the interpreter that workers start with, or say why that fails."""
    modules = ", ".join(names) or "the standard library"
    try:
        answer = commands.run(
            [*argv, "-c", _IMPORT, *names],
            timeout_s=_IMPORT_TIMEOUT_S,
            env=env,
            awaited=f"{argv[0]} to import {modules}",
            private=private,
        )
    except Unanswered as problem:
        raise Unavailable(f"importing {modules}: {problem}") from problem
    ending = f"exit code {answer.code}"
    if answer.code == 0:
        said = [one for one in map(_json_list, answer.stdout.splitlines()) if one]
        if not said:
            raise Unavailable(f"{argv[0]} is no Python: asked for its version, it said none")
        if len(said[-1]) == 2:
            python, versions = said[-1]
            return Imported(python, tuple(versions))
        ending = f"importing {modules} ended Python itself, with exit code 0"
    if answer.code < 0:
        ending = f"importing was ended by {signal_text(-answer.code)}"
    last = last_words(answer.stderr.splitlines(), 1)
    raise Unavailable(": ".join([ending] * (not last or answer.code <= 0) + last))


def _json_list(line: str) -> list[Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) and value and isinstance(value[0], str) else None


def import_complaint(executable: Path, lock: Lock) -> str | None:
    """Import the framework of an environment of our own, as workers do; None if that works."""
    try:
        imported([str(executable), "-I"], lock.imports, {**os.environ, **lock.environment})
    except Unavailable as problem:
        return str(problem)
    return None


def disk_bytes(root: Path) -> int:
    """Add up what an environment takes on the disk; links are not followed."""
    total = 0
    for folder, _, names in os.walk(root):
        for name in names:
            total += (Path(folder) / name).lstat().st_size
    return total


def _distributions(root: Path) -> list[metadata.Distribution]:
    paths = [str(path) for path in sorted(root.glob("lib*/python3*/site-packages"))]
    return list(metadata.distributions(path=paths[:1]))
