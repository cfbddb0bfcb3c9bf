"""Pack here, install by another Python that sees no network, and run a study there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.environments import pythons
from harness.errors import Unavailable
from tests import needs

STUDY = """title = "Nothing"
[matrix]
workload = ["nothing"]
framework = ["null"]
[measure]
trials = 6
warmup = "2 steps"
until = "20 steps"
"""


@pytest.mark.long
@pytest.mark.engine
@pytest.mark.timeout(900)
def test_a_study_runs_where_nothing_could_be_fetched(tmp_path: Path) -> None:
    unshare = needs.program("unshare", package="util-linux")
    there = newest_python()
    archive = tmp_path / "it.tar"
    packing = [sys.executable, "-m", "harness.cli", "pack", archive, "--frameworks", "tinygrad"]
    number = ".".join(map(str, there.version))
    subprocess.run([*packing, "--python", number], check=True)
    subprocess.run(["tar", "xf", archive, "-C", tmp_path], check=True)
    (tmp_path / "nothing.toml").write_text(STUDY)

    def offline(*argv: object) -> str:
        done = subprocess.run(
            [unshare, "--net", *map(str, argv)],
            cwd=tmp_path,
            env={"HOME": str(tmp_path / "home"), "PATH": os.defpath},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return done.stdout

    told = offline(there.path, "-I", tmp_path / "it" / "install.py", tmp_path / "venv")
    assert "tinygrad: " in told
    bakeoff = tmp_path / "venv" / "bin" / "bakeoff"
    offline(bakeoff, "run", "nothing.toml")
    assert "null" in offline(bakeoff, "show", "latest")
    assert "tinycnn" in offline(bakeoff, "plan", "quickstart")


def newest_python() -> pythons.Python:
    """Give a Python of another version than ours, where there is one."""
    try:
        return pythons.find("==3.12")
    except Unavailable:
        return pythons.find("")
