"""Run frameworks that a centre gives by modules and search paths, as its own users would."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import numpy
import pytest

from tests.cli.command import bakeoff

STAND_IN = Path(__file__).parents[1] / "adapters" / "singa" / "stand_in"
LIBRARIES = Path(numpy.__file__).parents[1]
STUDY = """
title = "The centre's framework"
[matrix]
workload = "tinycnn"
framework = "singa"
batch = 2
[measure]
trials = 1
warmup = "3 steps"
until = "4 steps"
tolerate = ["contended", "throttled", "stalled"]
"""


@pytest.fixture
def centre(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a module ``python``, and ``singa`` on top: a package on the search path."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "python3").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    (programs / "python3").chmod(0o755)
    init = tmp_path / "modules" / "init"
    init.mkdir(parents=True)
    (init / "bash").write_text(
        f"""module() {{
    local verb="$1"; shift
    for name in "$@"; do
        if [ "$verb" = unload ]; then
            LOADEDMODULES=$(echo "$LOADEDMODULES" | tr : '\\n' | grep -vx "$name" | paste -sd:)
            continue
        fi
        case ":$LOADEDMODULES:" in *":$name:"*) continue;; esac
        case "$name" in
        python) export PATH="{programs}:$PATH" PYTHONPATH="{LIBRARIES}:$PYTHONPATH";;
        singa) export PYTHONPATH="{STAND_IN}:$PYTHONPATH";;
        esac
        export LOADEDMODULES="${{LOADEDMODULES:+$LOADEDMODULES:}}$name"
    done
}}
"""
    )
    monkeypatch.setenv("MODULESHOME", str(tmp_path / "modules"))
    for name in ("LMOD_PKG", "LOADEDMODULES", "BASH_FUNC_module%%"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "platforms").mkdir()
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


def outcome(folder: Path, platform: str) -> dict[str, object]:
    """Run the study on a platform of these words and give its one trial's outcome."""
    text = f'title = "Centre"\nas_found = true\n{platform}'
    (folder / "platforms" / "centre.toml").write_text(text)
    ran = bakeoff("run", "study.toml", "--platform", "centre", "--name", "one", cwd=folder)
    trials = list((folder / "runs" / "one").glob("cells/*/trial-1/outcome.json"))
    assert trials, ran.stderr
    found: dict[str, object] = json.loads(trials[0].read_text())
    return found


def test_a_framework_given_by_modules_is_imported_and_runs(centre: Path) -> None:
    ended = outcome(centre, '[frameworks.singa]\nmodules = ["python", "singa"]\n')
    assert (ended["outcome"], ended["reason"]) == ("ok", "")


def test_modules_that_the_shell_has_loaded_already_are_loaded_again(
    centre: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADEDMODULES", "python:singa")
    monkeypatch.setenv("PATH", f"{centre / 'programs'}{os.pathsep}{os.environ['PATH']}")
    ended = outcome(centre, '[frameworks.singa]\nmodules = ["python", "singa"]\n')
    assert (ended["outcome"], ended["reason"]) == ("ok", "")


@pytest.mark.parametrize("table", ["environment", "frameworks.singa.environment"])
def test_a_search_path_that_a_platform_states_comes_after_the_worker_s_own(
    centre: Path, table: str
) -> None:
    (centre / "theirs" / "harness").mkdir(parents=True)
    (centre / "theirs" / "harness" / "__init__.py").write_text("raise SystemExit('not ours')\n")
    path = f"{centre / 'theirs'}:{STAND_IN}:{LIBRARIES}"
    named = f'[frameworks.singa]\ninterpreter = "{centre}/programs/python3"\n'
    ended = outcome(centre, f'{named}[{table}]\nPYTHONPATH = "{path}"\n')
    assert (ended["outcome"], ended["reason"]) == ("ok", "")


def test_a_search_path_of_the_platform_and_one_of_modules_are_both_looked_through(
    centre: Path,
) -> None:
    platform = '[frameworks.singa]\nmodules = ["python"]\n'
    ended = outcome(
        centre, f'{platform}[frameworks.singa.environment]\nPYTHONPATH = "{STAND_IN}"\n'
    )
    assert (ended["outcome"], ended["reason"]) == ("ok", "")


def test_the_caller_s_own_search_path_stays_outside(
    centre: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(STAND_IN))
    ended = outcome(centre, '[frameworks.singa]\nmodules = ["python"]\n')
    assert ended["outcome"] == "unsupported"
    assert "No module named 'singa'" in str(ended["reason"])
