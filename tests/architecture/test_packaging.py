"""Look into the wheel and the checkout: what the product reads is there, tests are not."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("bakeoff", "harness", "workloads", "platforms", "reports", "studies")


def tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return listed.stdout.splitlines()


@pytest.mark.skipif(
    not (ROOT / ".git").exists(), reason="no checkout, and nothing under version control"
)
def test_every_module_is_under_version_control() -> None:
    known = set(tracked())
    found = {str(path.relative_to(ROOT)) for path in (ROOT / "harness").rglob("*.py")}
    assert sorted(found - known) == [], "new, or ignored by .gitignore: see `git check-ignore -v`"


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_packages_and_nothing_else(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name in tracked():
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    made = tmp_path / "made"
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", made, source]
    subprocess.run(command, check=True)
    (wheel,) = made.glob("bakeoff-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    wanted = {name for name in tracked() if name.split("/")[0] in PACKAGES}
    assert held == wanted


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_is_ours(package: str) -> None:
    """A namesake elsewhere on the path would be imported instead."""
    origin = import_module(package).__file__
    assert origin is not None
    assert Path(origin).resolve() == ROOT / package / "__init__.py"
