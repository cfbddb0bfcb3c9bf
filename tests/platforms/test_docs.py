"""Run what the page on platforms shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.platform.platform import load_platform

PAGE = Path(__file__).resolve().parents[2] / "docs" / "platforms.md"


def test_the_profile_that_the_page_shows_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "ours.toml").write_text(block)
    monkeypatch.chdir(tmp_path)
    ours = load_platform("ours")
    assert (ours.nodes, ours.node.cores) == (64, 68)
