"""What a file system says of a path that somebody named is one message, never a stack trace."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import needs
from tests.runs import RecordedCell, Recording, write_run

LONG = "x" * 5000


def told(*command: str, cwd: Path) -> str:
    """Give what a command that must fail says."""
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert ended.returncode in (1, 2), ended.stderr
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", LONG),
        ("plan", LONG),
        ("sql", LONG, "select 1"),
        ("report", "run", "--output", LONG),
        ("collect", "--output", LONG, "--", "true"),
    ],
    ids=lambda words: words[0],
)
def test_a_name_too_long_for_the_file_system_is_named_and_not_repeated_whole(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    write_run(tmp_path, [RecordedCell()], Recording(name="run"))
    said = told(sys.executable, "-m", "harness.cli", *arguments, cwd=tmp_path)
    assert "File name too long" in said
    assert len(said) < 500


@pytest.mark.parametrize("verb", ["show", "report", "resume", "reference add"])
def test_a_folder_that_this_user_may_not_enter_is_named(tmp_path: Path, verb: str) -> None:
    powerless: tuple[str, ...] = ()
    if os.geteuid() == 0:  # root without its right to pass by permissions
        powerless = (needs.program("setpriv", package="util-linux"), "--bounding-set=-all")
    shut = tmp_path / "shut"
    (shut / "run").mkdir(parents=True)
    shut.chmod(0o000)
    command = (*powerless, sys.executable, "-m", "harness.cli", *verb.split(), str(shut / "run"))
    try:
        said = told(*command, cwd=tmp_path)
    finally:
        shut.chmod(0o700)
    assert f"{shut / 'run'}: Permission denied" in said
