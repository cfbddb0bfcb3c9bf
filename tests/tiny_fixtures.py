"""A framework small enough to build, as fixtures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tiny_framework import TinyFramework, Told


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TinyFramework:
    return TinyFramework(tmp_path, monkeypatch)


@pytest.fixture
def told() -> Told:
    return Told()
