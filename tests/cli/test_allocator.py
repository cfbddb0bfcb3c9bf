"""Hold the factor ``allocator`` to what really happens in a worker."""

from __future__ import annotations

import ctypes.util
import json
from pathlib import Path

import pytest

from tests.cli.command import bakeoff
from tests.needs import missing

STUDY = """
title = "Allocators"
[matrix]
workload = "nothing"
framework = "null"
allocator = "NAME"
[measure]
trials = 1
warmup = "1 steps"
until = "5 steps"
"""


def outcome(folder: Path, allocator: str) -> tuple[str, str]:
    (folder / "mine.toml").write_text(STUDY.replace("NAME", allocator), encoding="utf-8")
    bakeoff("run", "mine.toml", "--name", "one", cwd=folder)
    query = "select outcome, reason from trials"
    asked = bakeoff("sql", "one", query, "--json", cwd=folder)
    row = json.loads(asked.stdout)[0]
    return row["outcome"], row["reason"]


def test_a_preloaded_allocator_is_seen_in_the_worker(tmp_path: Path) -> None:
    if ctypes.util.find_library("jemalloc") is None:
        missing("jemalloc", "install it, for example: apt-get install libjemalloc2")
    assert outcome(tmp_path, "jemalloc")[0] == "ok"


@pytest.mark.parametrize("name", ["nosuchalloc", "/nowhere/libmine.so"])
def test_an_allocator_that_is_not_there_is_said(tmp_path: Path, name: str) -> None:
    ended, reason = outcome(tmp_path, name)
    assert ended == "unsupported"
    assert f"the allocator '{name}' is not loaded" in reason
