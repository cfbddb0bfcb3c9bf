"""Hold the command line to what a person at a terminal relies on."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from harness.cli.main import VERBS
from tests import runs
from tests.cli.command import bakeoff

FLOOR = """
title = "The harness's own floor"
[matrix]
workload = "nothing"
framework = "null"
threads = [1, 2]
[measure]
trials = 2
warmup = "3 steps"
until = "50 steps"
tolerate = ["contended", "throttled", "stalled"]
reference = { framework = "null", threads = 1 }
"""

MISTAKES = """title = "Three mistakes"
[matrix]
workload = "tinycnn"
framework = ["torch", "pytroch"]
[measure]
trials = 6
trails = 6
until = "60"
"""


@pytest.fixture
def floor(tmp_path: Path) -> Path:
    path = tmp_path / "floor.toml"
    path.write_text(FLOOR, encoding="utf-8")
    return path


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str) -> None:
    command = importlib.import_module(f"harness.cli.verbs.{verb}").command
    assert isinstance(command, click.Command)
    assert command.help


@pytest.mark.parametrize(
    "words",
    ["show runs/old", "resume runs/old", "status runs/old", "sql runs/old SELECT(1)", "list runs"],
)
def test_a_run_of_an_older_format_is_refused_in_a_sentence(words: str, tmp_path: Path) -> None:
    run = runs.write_run(tmp_path / "runs", [runs.RecordedCell()], runs.Recording(name="old"))
    for file in (run / "run.json", run / "plan.json"):
        stored = json.loads(file.read_text("utf-8"))
        file.write_text(json.dumps({**stored, "version": 1}), "utf-8")
    asked = bakeoff(*words.split(), cwd=tmp_path)
    assert "this run has format 1, and this bakeoff reads format" in asked.stdout + asked.stderr
    assert "Traceback" not in asked.stderr


def test_a_misspelt_verb_names_the_nearest(tmp_path: Path) -> None:
    asked = bakeoff("rnu", cwd=tmp_path)
    assert asked.returncode == 2
    assert "Did you mean 'run'?" in asked.stderr


def test_three_mistakes_give_three_messages_and_no_run(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(MISTAKES, encoding="utf-8")
    asked = bakeoff("run", "mine.toml", cwd=tmp_path)
    assert asked.returncode == 2
    assert "mine.toml:4: matrix.framework[1]: no framework is called 'pytroch'" in asked.stderr
    assert "Did you mean 'torch'?" in asked.stderr
    assert "mine.toml:7: measure.trails: unknown key. Did you mean 'trials'?" in asked.stderr
    assert "mine.toml:8: measure.until: '60' needs a unit" in asked.stderr
    assert "3 faults, nothing was run." in asked.stderr
    assert "Traceback" not in asked.stderr
    assert not (tmp_path / "runs").exists()


def test_a_plan_touches_nothing(floor: Path) -> None:
    before = sorted(floor.parent.iterdir())
    asked = bakeoff("plan", "floor.toml", cwd=floor.parent)
    assert asked.returncode == 0
    assert "2 cells, 2 trials each, 4 in all" in asked.stdout
    assert "reference" in asked.stdout
    assert sorted(floor.parent.iterdir()) == before


def test_a_plan_as_json_holds_cells_order_and_cost(floor: Path) -> None:
    plan = json.loads(bakeoff("plan", "floor.toml", "--json", cwd=floor.parent).stdout)
    assert len(plan["cells"]) == 2
    assert len(plan["order"]) == 4
    assert plan["estimate"]["node_hours"] > 0


def test_nothing_selected_is_not_fine(floor: Path) -> None:
    asked = bakeoff("plan", "floor.toml", "--only", "framework=torch", "--json", cwd=floor.parent)
    assert asked.returncode == 2
    assert json.loads(asked.stdout) == {"cells": [], "holes": []}
    assert "no cell of this study matches --only framework=torch" in asked.stderr


def test_a_run_ends_with_an_answer_and_a_page(floor: Path) -> None:
    ran = bakeoff("run", "floor.toml", "--name", "one", cwd=floor.parent)
    assert ran.returncode == 0, ran.stderr
    assert "4 of 4 planned trials, 4 ok" in ran.stderr
    assert "cannot tell" in ran.stdout
    page = floor.parent / "runs" / "one" / "report.html"
    assert "Content-Security-Policy" in page.read_text(encoding="utf-8")

    proved = sorted((page.parent / "gate").iterdir())
    proved[-1].unlink()  # as if the gate had been cut off
    again = bakeoff("resume", "one", cwd=floor.parent)
    assert again.returncode == 0
    assert "4 of 4 planned trials" in again.stderr
    assert sorted((page.parent / "gate").iterdir()) == proved

    asked = bakeoff("sql", "one", "select count(*) as n from trials", "--json", cwd=floor.parent)
    assert json.loads(asked.stdout) == [{"n": 4}]

    listed = json.loads(bakeoff("list", "runs", "--json", cwd=floor.parent).stdout)
    assert [(row["name"], row["done"], row["planned"]) for row in listed] == [("one", 4, 4)]

    second = bakeoff("run", "floor.toml", "--name", "one", cwd=floor.parent)
    assert second.returncode == 1
    assert "bakeoff resume" in second.stderr


def test_a_home_that_cannot_be_written_and_is_not_needed_costs_nothing(
    floor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "BAKEOFF_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", "/proc/self/nowhere")
    text = FLOOR.replace('"nothing"', '"tinycnn"')  # which the gate examines
    floor.write_text(text, encoding="utf-8")
    ran = bakeoff("run", "floor.toml", "--name", "one", cwd=floor.parent)
    assert "4 of 4 planned trials, 4 ok" in ran.stderr
    assert "Report: runs/one/report.html" in ran.stdout
    next((floor.parent / "runs" / "one" / "cells").glob("*/trial-2/outcome.json")).unlink()
    again = bakeoff("resume", "one", cwd=floor.parent)
    assert "4 of 4 planned trials, 4 ok" in again.stderr
    assert bakeoff("list", "runs", cwd=floor.parent).returncode == 0


def test_the_published_counts_are_listed_without_any_framework(tmp_path: Path) -> None:
    rows = json.loads(bakeoff("list", "workloads", "--json", cwd=tmp_path).stdout)
    counts = {row["name"]: (row.get("parameters"), row.get("macs")) for row in rows}
    assert counts["resnet50"] == (25_557_032, 4_089_184_256)
    assert counts["resnet50-v1"] == (25_557_032, 3_857_973_248)
    assert all("problem" not in row for row in rows)


def test_an_unknown_run_says_where_it_looked(tmp_path: Path) -> None:
    asked = bakeoff("show", "nowhere", cwd=tmp_path)
    assert asked.returncode == 1
    assert "there is no such run" in asked.stderr
    assert "Traceback" not in asked.stderr


def test_a_run_that_was_never_fully_made_is_listed_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "runs" / "one").mkdir(parents=True)
    (tmp_path / "runs" / "one" / "run.json").write_text("{}", encoding="utf-8")
    listed = bakeoff("list", "runs", cwd=tmp_path).stdout
    assert "one  cannot be used: it was never fully made; remove it" in listed


def test_a_run_s_name_is_a_name(floor: Path) -> None:
    asked = bakeoff("run", "floor.toml", "--name", "../out", cwd=floor.parent)
    assert asked.returncode == 2
    assert not (floor.parent.parent / "out").exists()


def test_without_a_reference_a_pilot_block_chooses_one_and_is_discarded(
    floor: Path,
) -> None:
    study = floor.parent / "open.toml"
    text = floor.read_text(encoding="utf-8").replace("trials = 2", "trials = 6")
    lines = [line for line in text.splitlines() if not line.startswith("reference")]
    study.write_text("\n".join(lines), encoding="utf-8")
    planned = bakeoff("plan", "open.toml", cwd=floor.parent)
    assert "one pilot block of 2 trials chooses the fastest cell" in planned.stdout
    ran = bakeoff("run", "open.toml", "--name", "open", cwd=floor.parent)
    assert ran.returncode == 0, ran.stderr
    assert "14 of 14 planned trials, 14 ok" in ran.stderr
    assert "12 of 12 trials" in ran.stdout
    assert "2 pilot trials chose the reference and are discarded" in " ".join(ran.stdout.split())
    assert "No reference was declared" in ran.stdout
    page = (floor.parent / "runs" / "open" / "report.html").read_text(encoding="utf-8")
    assert "12 of 12 trials" in page


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("bakeoff ru", "run"),
        ("bakeoff run quick", "quickstart"),
        ("bakeoff plan --platform loc", "local"),
        ("bakeoff env create tor", "torch"),
        ("bakeoff show o", "one"),
    ],
)
def test_the_shell_completes_names(typed: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "runs" / "one").mkdir(parents=True)
    (tmp_path / "runs" / "one" / "run.json").write_text("{}", encoding="utf-8")
    asked = bakeoff(
        cwd=tmp_path,
        _BAKEOFF_COMPLETE="bash_complete",
        COMP_WORDS=typed,
        COMP_CWORD=str(len(typed.split()) - 1),
    )
    assert f"plain,{expected}" in asked.stdout.splitlines()
    assert asked.stderr == ""


@pytest.mark.parametrize(
    "arguments", [("plan", "floor.toml"), ("list", "workloads", "--json"), ("--version",)]
)
def test_an_output_that_cannot_be_written_is_an_error_in_one_line(
    floor: Path, arguments: tuple[str, ...]
) -> None:
    with Path("/dev/full").open("w") as full:
        asked = subprocess.run(
            [sys.executable, "-m", "harness.cli", *arguments],
            cwd=floor.parent,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert asked.returncode == 1
    assert asked.stderr == "The output cannot be written: No space left on device.\n"


@pytest.mark.parametrize("name", ["", "a\nb", "a/b", ".hidden", "-x", "a b"])
def test_a_run_is_called_something_that_a_folder_and_a_shell_can_take(
    floor: Path, name: str
) -> None:
    asked = bakeoff("run", "floor.toml", f"--name={name}", cwd=floor.parent)
    assert asked.returncode == 2
    assert asked.stderr.splitlines()[-1].startswith(f"A run cannot be called {name!r}: use letters")
    assert not (floor.parent / "runs").exists()


@pytest.mark.parametrize(("nodes", "warned"), [(2, False), (8, True)])
def test_messages_of_different_sizes_are_no_comparison_to_warn_of(
    tmp_path: Path, nodes: int, warned: bool
) -> None:
    claim = f'title = "x"\nextends = "slurm-cluster"\nnodes = {nodes}\n'
    (tmp_path / "there.toml").write_text(claim)
    told = bakeoff("plan", "network-check", "--platform", "there.toml", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert ('every comparison will end as "cannot tell"' in told.stdout) == warned
