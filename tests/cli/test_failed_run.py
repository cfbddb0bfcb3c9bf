"""A run none of whose trials ends well has a page, which says why and repeats no secret."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.cli.command import bakeoff

_PLATFORM = """title = "Here"
extends = "local"
[frameworks.null]
interpreter = "{interpreter}"
"""
_STUDY = """title = "Fails"
[matrix]
workload = "nothing"
framework = "null"
[measure]
trials = 1
until = "20 ms"
"""
_INTERPRETER = """#!/bin/sh
case "$*" in *harness.worker*) ;; *) exec {python} "$@" ;; esac
printf 'no such licence\\n\\033[33mpassword\\033[0m=\\033[35mplumtree\\033[0m\\n' >&2
exit 3
"""


def test_a_run_that_only_failed_has_a_page_and_says_why(tmp_path: Path) -> None:
    interpreter = tmp_path / "python"
    interpreter.write_text(_INTERPRETER.format(python=sys.executable))
    interpreter.chmod(0o755)
    (tmp_path / "fails.toml").write_text(_STUDY)
    (tmp_path / "here.toml").write_text(_PLATFORM.format(interpreter=interpreter))
    ran = bakeoff("run", "fails.toml", "--platform", "here.toml", "--name", "x", cwd=tmp_path)
    assert ran.returncode == 1, ran.stderr
    page = (tmp_path / "runs" / "x" / "report.html").read_text()
    for told in (page, ran.stdout, ran.stderr):
        assert "no such licence" in " ".join(told.split())
        assert "plumtree" not in told
        assert "\N{REPLACEMENT CHARACTER}" not in told
