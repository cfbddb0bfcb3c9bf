"""Made-up distributions with provider packages, laid where Python finds them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import plugins
from harness.study.framework import framework_info

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Lay a distribution with one provider package of workloads where Python finds it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    packages = set()

    def installed(package: str, *, group: str = "workloads", **files: str) -> None:
        packages.add(package)
        information = tmp_path / f"{package}_dist-1.0.dist-info"
        information.mkdir()
        (information / "entry_points.txt").write_text(f"[bakeoff.{group}]\nany = {package}\n")
        folder = tmp_path / package
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        for name, text in files.items():
            (folder / name.replace("__dot__", ".")).write_text(text)
        forget()

    forget()
    yield installed
    forget()
    for name in list(sys.modules):
        if name.partition(".")[0] in packages:
            del sys.modules[name]


def forget() -> None:
    """Find plug-ins anew."""
    plugins.providers.cache_clear()
    plugins._entry_points.cache_clear()
    framework_info.cache_clear()
