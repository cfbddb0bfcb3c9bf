"""What lies in examples/ works for a reader: studies plan, cheap ones run, and so do scripts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import runs
from tests.cli.command import bakeoff

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
STUDIES = sorted(path.name for path in EXAMPLES.glob("*.toml"))
ONCE = ("--set", "measure.trials=1", "--set", "measure.reruns=0")
MAKE = "traces --format raw --samples 256"


def run_example(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", EXAMPLES / name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_run_is_loaded_and_its_cells_are_printed(tmp_path: Path) -> None:
    failing = runs.RecordedCell(framework="jax", outcomes=dict.fromkeys(range(1, 7), "failed"))
    run = runs.write_run(tmp_path, [runs.RecordedCell(), failing])
    done = run_example("load_a_run.py", run)
    assert done.stderr == ""
    answer, _, torch, jax, *trials = done.stdout.splitlines()
    assert answer.startswith("torch reaches 7")
    assert torch.startswith("tinycnn · torch")
    assert "images/s  [" in torch
    assert jax.split()[-1] == "–"
    assert trials == [f"{failing.label}, block {block}: failed, None" for block in range(1, 7)]


def test_a_mistake_is_told_in_a_sentence(tmp_path: Path) -> None:
    done = run_example("load_a_run.py", tmp_path / "nowhere")
    assert done.returncode == 1
    assert "there is no such run" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_example_is_run_by_a_test() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert all(f'"{path.name}"' in text for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("study", STUDIES)
def test_each_study_plans_what_its_question_needs(study: str, tmp_path: Path) -> None:
    planned = bakeoff("plan", str(EXAMPLES / study), "--json", cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr
    plan = json.loads(planned.stdout)
    assert plan["cells"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.io
def test_studies_without_a_framework_run(tmp_path: Path) -> None:
    home = {"BAKEOFF_HOME": str(tmp_path / "home")}
    make = next(line for line in (EXAMPLES / "files.toml").read_text().splitlines() if MAKE in line)
    command = re.search(r"`bakeoff (.*)`", make)
    assert command is not None
    made = bakeoff(*command.group(1).split(), cwd=tmp_path, **home)
    assert made.returncode == 0, made.stderr
    for study, cells in (("files", 2), ("checkpoints", 1)):
        words = ("run", str(EXAMPLES / f"{study}.toml"), "--name", study, *ONCE)
        ran = bakeoff(*words, cwd=tmp_path, **home)
        assert f"{cells} of {cells} planned trials, {cells} ok" in ran.stderr, ran.stderr
        assert (tmp_path / "runs" / study / "report.html").is_file()


def test_the_list_of_examples_is_whole() -> None:
    listed = re.findall(r"\]\(([\w.-]+)\)", (EXAMPLES / "README.md").read_text(encoding="utf-8"))
    there = {path.name for path in EXAMPLES.iterdir() if path.suffix in (".toml", ".py")}
    assert sorted(listed) == sorted(there)
