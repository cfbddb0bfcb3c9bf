"""What Bakeoff's host side needs of the interpreter that runs it, brought without a network."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def prepare(packages: Path, wheels: Path | None) -> str | None:
    """Make every package of the host side importable; say what is missing where that fails.

    What is installed comes into ``packages`` alone: the interpreter itself stays as it is.
    """
    packages.mkdir(parents=True, exist_ok=True)
    sys.path[:0] = [str(ROOT), str(packages)]
    if wheels is not None and missing():
        problem = _install(wheels, packages)
        if problem is not None:
            return problem
    importlib.invalidate_caches()
    absent = missing()
    if absent:
        return _sentence(absent)
    _declare(packages)
    return None


def missing() -> list[str]:
    """Name the required packages that this interpreter does not have."""
    return [text for text in _project()["dependencies"] if not _is_there(_name(text))]


def _project() -> dict[str, Any]:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project: dict[str, Any] = document["project"]
    return project


def _name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0]


def _is_there(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _install(wheels: Path, packages: Path) -> str | None:
    files = sorted(map(str, wheels.glob("*.whl")))
    if not files:
        return f"{wheels} holds no wheel (*.whl)."
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"),
            *("--disable-pip-version-check", "--upgrade", "--target", str(packages), *files),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return None
    last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
    return f"The wheels of {wheels} do not fit {sys.executable}: {last[0]}"


def _sentence(absent: list[str]) -> str:
    version = ".".join(map(str, sys.version_info[:2]))
    return (
        f"Bakeoff's own side needs {', '.join(absent)}, which {sys.executable} "
        f"(Python {version}) does not have.\n"
        "    Where there is a network, pack it for this machine:\n"
        f"      bakeoff pack ours.tar --python {version}\n"
        "    and here: tar xf ours.tar, and add WHEELS=ours/wheels;\n"
        "    or bring the .venv of `make setup`, with the Python that made it."
    )


def _declare(packages: Path) -> None:
    """Write the metadata that names Bakeoff's plug-ins, where the checkout is not installed."""
    if _is_there("bakeoff"):
        return
    project = _project()
    folder = packages / f"bakeoff-{project['version']}.dist-info"
    folder.mkdir(exist_ok=True)
    lines = [f"[{group}]\n" + _pairs(names) for group, names in project["entry-points"].items()]
    (folder / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    required = "".join(f"Requires-Dist: {text}\n" for text in project["dependencies"])
    text = f"Metadata-Version: 2.1\nName: bakeoff\nVersion: {project['version']}\n{required}"
    (folder / "METADATA").write_text(text, encoding="utf-8")
    importlib.invalidate_caches()


def _pairs(names: dict[str, str]) -> str:
    return "".join(f"{name} = {place}\n" for name, place in names.items())
