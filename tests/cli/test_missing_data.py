"""Tell a user first that a study's data are missing, before anything is proved."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import bakeoff

pytestmark = pytest.mark.io

STUDY = """
title = "Nothing to read yet"
[matrix]
workload = "tinycnn"
framework = "null"
[[include]]
workload = "read-traces"
framework = "null"
samples = 64
"""


def test_missing_data_are_named_before_the_gate_says_anything(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY, "utf-8")
    done = bakeoff("run", "study.toml", cwd=tmp_path, BAKEOFF_HOME=str(tmp_path / "home"))
    assert done.returncode == 1
    assert "To make it: bakeoff data create traces --format raw --samples 64" in done.stderr
    assert "To read files of your own instead: add --data PATH" in done.stderr
    assert "Gate:" not in done.stderr
    assert not (tmp_path / "home" / "gate").exists()
    assert not (tmp_path / "runs").exists()


def test_a_plan_says_what_its_run_would_lack(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY, "utf-8")
    done = bakeoff("plan", "study.toml", cwd=tmp_path, BAKEOFF_HOME=str(tmp_path / "home"))
    assert done.returncode == 0
    (note,) = (one for one in done.stdout.splitlines() if "is not there" in one)
    assert note.startswith("Note: ")
    assert note.endswith("To make it: bakeoff data create traces --format raw --samples 64")
