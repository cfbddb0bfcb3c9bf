"""The verb `layers`, with a real framework: layers are timed, kept and laid beside their floors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import bakeoff
from tests.needs import framework

pytestmark = pytest.mark.framework


def test_layers_are_timed_alone_and_the_least_is_kept(tmp_path: Path) -> None:
    framework("torch")
    asked = ("layers", "tinycnn", "--heaviest", "1", "--trials", "1", "--until", "100 ms")
    told = bakeoff(*asked, "--batch", "2", "--json", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    answer = json.loads(told.stdout)
    passes = {row["pass"] for row in answer["layers"]}
    assert {"forward", "forward+backward"} <= passes
    for row in answer["layers"]:
        assert all(one["seconds"] >= row["least_s"] for one in row["measured"])
        assert row["memory_least_s"] is not None
    (added,) = answer["sums"]
    assert 0 < added["layers"] < added["of"]
