"""The nodes of a machine are held to each other, by what an ordinary run holds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness.store.layout import TrialPaths
from tests.cli.command import bakeoff
from tests.gauntlet.attacks import say_everywhere
from tests.outcomes import seal
from tests.runs import RecordedCell, Recording, write_run
from tests.screened_runs import NODES, screened


@pytest.mark.parametrize("slow", [None, 3])
def test_a_node_that_is_slower_in_every_block_is_named(tmp_path: Path, slow: int | None) -> None:
    screened(tmp_path / "runs" / "s", slow)
    told = bakeoff("screen", "--of", "s", "--json", cwd=tmp_path)
    found = json.loads(told.stdout)
    assert told.returncode == (0 if slow is None else 1), told.stderr
    assert found["sick"] == ([] if slow is None else [f"node {slow}"])  # all say the same name
    assert len(found["rows"]) == NODES
    again = bakeoff("screen", "--of", "s", "--json", cwd=tmp_path)
    assert again.stdout == told.stdout


def test_a_node_on_which_work_fails_is_named_and_hides_nobody(tmp_path: Path) -> None:
    screened(tmp_path / "runs" / "s", 3, failed={2: 7})
    told = bakeoff("screen", "--of", "s", "--json", cwd=tmp_path)
    assert told.returncode == 1, told.stderr
    found = json.loads(told.stdout)
    assert found["sick"] == ["node 2", "node 3"]
    (failure,) = found["failures"]
    assert (failure["node"], failure["trials"], failure["of"]) == ("node 2", 7, 7)
    words = bakeoff("screen", "--of", "s", cwd=tmp_path)
    assert "node 2: tinycnn failed in 7 of 7 trials" in words.stdout
    assert "Warning" not in words.stderr


def test_work_that_fails_on_several_nodes_names_nobody(tmp_path: Path) -> None:
    screened(tmp_path / "runs" / "s", None, failed={1: 7, 2: 7})
    told = bakeoff("screen", "--of", "s", cwd=tmp_path)
    assert "tinycnn failed in 14 of 14 trials on node 1, node 2, which names nobody" in told.stdout
    assert "Exclude" not in told.stdout


def test_a_trial_that_failed_once_is_told_and_names_nobody(tmp_path: Path) -> None:
    screened(tmp_path / "runs" / "s", None, failed={2: 1})
    told = bakeoff("screen", "--of", "s", cwd=tmp_path)
    assert told.returncode == 0, told.stdout
    assert "tinycnn failed in 1 of 7 trials on node 2, which names nobody" in told.stdout


def test_what_does_not_apply_to_a_screen_of_before_is_said(tmp_path: Path) -> None:
    screened(tmp_path / "runs" / "s", None)
    told = bakeoff("screen", "--of", "s", "--nodes", "8", "--until", "9 s", cwd=tmp_path)
    assert "--nodes, --until do not apply with --of" in told.stderr
    assert "apply" not in bakeoff("screen", "--of", "s", "--json", cwd=tmp_path).stderr


def test_what_is_no_screen_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "s", (RecordedCell(),), Recording())
    told = bakeoff("screen", "--of", "s", cwd=tmp_path)
    assert told.returncode == 2
    assert "no screen: its cells name no node" in told.stderr


def test_one_node_is_not_screened(tmp_path: Path) -> None:
    told = bakeoff("screen", cwd=tmp_path)
    assert told.returncode == 2
    assert "local has 1 node at hand. A screen takes 3 at least" in told.stderr
    assert not (tmp_path / "runs").exists()


def test_what_no_trial_shows_is_not_called_clean(tmp_path: Path) -> None:
    place = screened(tmp_path / "runs" / "s", None)
    for trial in (place / "cells").glob("*/trial-[2-7]"):
        shutil.rmtree(trial)
    told = bakeoff("screen", "--of", "s", cwd=tmp_path)
    assert told.returncode == 1
    assert "1 block: too few to tell" in told.stdout
    assert "No node differs" not in told.stdout


def test_a_page_of_a_screen_begins_with_a_map_of_its_nodes(tmp_path: Path) -> None:
    place = screened(tmp_path / "runs" / "s", 3)
    told = bakeoff("report", "s", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    page = (place / "report.html").read_text("utf-8")
    assert "Which nodes differ?" in page
    assert "node 3 is 50 % slower in tinycnn, p 0.0" in page
    assert "node 3, tinycnn: 50 % slower than the median node (49.2 to 51 %), p 0.001" in page


def test_a_page_of_a_screen_that_measured_nothing_is_made(tmp_path: Path) -> None:
    place = screened(tmp_path / "runs" / "s", None)
    say_everywhere(place, "=else")
    told = bakeoff("report", "s", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert (place / "report.html").exists()


def test_a_line_without_an_end_costs_its_trial_alone(tmp_path: Path) -> None:
    place = screened(tmp_path / "runs" / "s", 3)
    damaged = min((place / "cells").glob("*/trial-1/events.0.jsonl"))
    with damaged.open("ab") as file:
        file.write(b'{"event": "' + b"y" * (64 << 20))
    seal(TrialPaths(damaged.parent))
    told = bakeoff("screen", "--of", "s", "--json", cwd=tmp_path)
    assert "Input Error" not in told.stderr
    assert json.loads(told.stdout)["sick"] == ["node 3"]
    told = bakeoff("show", "s", cwd=tmp_path)
    assert "is damaged: a line has" in " ".join((told.stdout + told.stderr).split())
