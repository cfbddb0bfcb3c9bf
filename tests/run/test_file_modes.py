"""Leave it to the user's umask who may read a run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

STUDY = """
title = "Modes"
[matrix]
workload = "tinycnn"
framework = "null"
[measure]
trials = 1
warmup = "3 steps"
until = "20 steps"
"""


@pytest.mark.parametrize("umask", [0o077, 0o022])
def test_nothing_of_a_run_is_open_to_more_than_the_umask_allows(tmp_path: Path, umask: int) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    made = subprocess.run(
        [sys.executable, "-m", "harness.cli", "run", "study.toml", "--name", "one"],
        cwd=tmp_path,
        env={**os.environ, "BAKEOFF_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
        umask=umask,
    )
    assert made.returncode == 0, made.stderr
    written = [*(tmp_path / "runs").rglob("*"), *(tmp_path / "home").rglob("*")]
    assert any(path.name == "outcome.json" for path in written)
    assert [path for path in written if path.lstat().st_mode & umask] == []
