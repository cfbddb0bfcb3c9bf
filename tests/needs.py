"""Say what a test needs of the machine: skip with a cure, or fail where it must be.

``BAKEOFF_REQUIRE_ENGINES=1`` (set by ``.ci/run``) turns every skip into a failure, except for what
the project cannot install itself.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from harness.machine.machine import read_machine

REQUIRED = os.environ.get("BAKEOFF_REQUIRE_ENGINES") == "1"


def missing(what: str, cure: str) -> None:
    """Skip, or fail where everything installable has to be installed."""
    message = f"{what} is missing; {cure}"
    if REQUIRED:
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


def program(*names: str, package: str) -> str:
    """Find a program of a system package."""
    for name in names:
        path = shutil.which(name)
        if path:
            return path
    missing(names[0], f"install it, for example: apt-get install {package}")
    raise AssertionError


def chromium() -> str:
    """Find a headless browser."""
    return program("chromium", "chromium-browser", "google-chrome", package="chromium")


def framework(name: str) -> Path:
    """Find the interpreter of a framework environment that ``bakeoff env create`` built."""
    found = _environments().get(name)
    if found is None:
        missing(f"the framework environment '{name}'", f"build it: bakeoff env create {name}")
        raise AssertionError
    return found


def compiled(name: str) -> Path:
    """Find an environment with something compiled from source: no set-up makes it yet."""
    if (found := _environments().get(name)) is None:
        pytest.skip(f"'{name}' is missing; build it, some minutes: bakeoff env create {name}")
    return found


@cache
def _environments() -> dict[str, Path]:
    listing = subprocess.run(
        [sys.executable, "-m", "harness.cli", "env", "list", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = json.loads(listing.stdout)
    return {row["name"]: Path(row["python"]) for row in rows if row["state"] == "ready"}


def python37() -> str:
    """Find a Python 3.7, which the project cannot install itself."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [
        os.environ.get("BAKEOFF_PYTHON37"),
        shutil.which("python3.7"),
        *map(str, sorted(versions.glob("3.7.*/bin/python"))),
    ]
    for candidate in candidates:
        if candidate and _is_python37(candidate):
            return candidate
    pytest.skip("Python 3.7 is missing; name one in BAKEOFF_PYTHON37")


@cache
def _is_python37(path: str) -> bool:
    asked = subprocess.run(
        [path, "-c", "import sys; print(sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip() == "(3, 7)"


def capability(name: str, why: str) -> None:
    """Skip where the processor lacks an instruction set."""
    if name not in read_machine().capabilities:
        pytest.skip(f"this processor has no {name}; {why}")


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Mount a file system that is soon full."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a file system, and not everywhere")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
