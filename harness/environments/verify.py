"""Compare an environment with its lock: what is installed, is it whole, does it load."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path

from harness import commands
from harness.commands import Unanswered
from harness.environments.lock import EnvironmentReference, Lock, normal

_IMPORT = """
import importlib, sys
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    print(name, getattr(module, "__version__", ""))
"""
_IMPORT_TIMEOUT_S = 300


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
    """Name the packages some of whose files are missing or cut short."""
    faults = []
    for one in _distributions(root):
        bad = [
            file
            for file in one.files or ()
            if file.size is not None and _size(Path(str(file.locate()))) != file.size
        ]
        if one.files is None or bad:
            example = f", for example {bad[0]}" if bad else ""
            faults.append(f"{one.metadata['Name']}: {len(bad)} files missing or changed{example}")
    return sorted(faults)


def import_complaint(executable: Path, names: Sequence[str]) -> str | None:
    """Import the framework where it is installed; None if that works, else its last words."""
    if not names:
        return None
    try:
        answer = commands.run(
            [str(executable), "-I", "-c", _IMPORT, *names], timeout_s=_IMPORT_TIMEOUT_S
        )
    except Unanswered:
        return f"importing took longer than {_IMPORT_TIMEOUT_S} s"
    if answer.code == 0:
        return None
    lines: Iterable[str] = (line for line in answer.stderr.splitlines() if line.strip())
    return list(lines)[-1] if answer.stderr.strip() else f"exit code {answer.code}"


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


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
