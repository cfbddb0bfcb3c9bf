"""Make a framework small enough to be built in a test: one wheel, one lock, no index."""

from __future__ import annotations

import base64
import hashlib
import shutil
import zipfile
from pathlib import Path
from typing import ClassVar

import pytest

from harness.environments import cache, local
from harness.environments.cache import Environment
from harness.environments.lock import EnvironmentReference

LOCK = """title = "Tiny"
python = ">=3.7"
imports = ["tiny"]
shown = ["tiny"]

[cpu]
choices = [["tiny==1.0"]]

[gpu]
choices = [["tiny==1.0"]]

[groups.extra]
tiny-extra = "2.0"
"""


class TinyFramework:
    """A place of its own for environments, locks and wheels; pip sees no index but that."""

    _first: ClassVar[Path | None] = None

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.wheels = folder / "wheels"
        self.wheels.mkdir()
        self.home = folder / "home"
        self.locks = folder / "config" / "bakeoff" / "environments"
        self.locks.mkdir(parents=True)
        self.lock(LOCK)
        monkeypatch.setenv("BAKEOFF_HOME", str(self.home))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        monkeypatch.setenv("PIP_FIND_LINKS", str(self.wheels))
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        monkeypatch.setattr("harness.machine.gpus.has_gpu", lambda: False)

    def lock(self, text: str, name: str = "tiny") -> None:
        (self.locks / f"{name}.toml").write_text(text, encoding="utf-8")

    def offer(
        self, version: str, *, name: str = "tiny", source: str = "", needs: tuple[str, ...] = ()
    ) -> Path:
        """Write a wheel as PEP 427 describes it."""
        stem = f"{name.replace('-', '_')}-{version}"
        module = f"{name.replace('-', '_')}/__init__.py"
        requires = "".join(f"Requires-Dist: {need}\n" for need in needs)
        files = {
            module: source or f'__version__ = "{version}"\n',
            f"{stem}.dist-info/METADATA": (
                f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}"
            ),
            f"{stem}.dist-info/WHEEL": (
                "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            ),
        }
        record = "".join(f"{path},{_hashed(text)},{len(text)}\n" for path, text in files.items())
        wheel = self.wheels / f"{stem}-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for path, text in files.items():
                archive.writestr(path, text)
            archive.writestr(f"{stem}.dist-info/RECORD", f"{record}{stem}.dist-info/RECORD,,\n")
        return wheel

    def built(self) -> Environment:
        """Build version 1.0, or take a copy of what was built so first: pip takes its time."""
        self.offer("1.0")
        first = TinyFramework._first
        if first is None:
            made = local.create(EnvironmentReference.parse("tiny"), Told())
            first = self.folder / "first" / made.root.name
            TinyFramework._first = shutil.copytree(made.root, first, symlinks=True)
            return made
        root = self.home / "environments" / first.name
        shutil.copytree(first, root, symlinks=True)
        copied = cache.read(root)
        assert copied is not None
        return copied


class Told:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.done: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def doing(self, text: str) -> None:
        self.done.append(text)


def _hashed(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
