"""Run a study of checkpoints from the command line to the page."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests import needs
from tests.cli.command import bakeoff

pytestmark = pytest.mark.io

STUDY = """
title = "Straight, or through"
[matrix]
workload = "tinycnn"
framework = "null"
checkpoint_every = 10
checkpoint_to = "slow"
[[include]]
workload = "tinycnn"
framework = "null"
checkpoint_every = 10
checkpoint_to = "slow"
checkpoint_through = "fast"
[measure]
trials = 1
warmup = "5 steps"
until = "40 steps"
tolerate = ["contended", "throttled", "stalled"]
reference = { checkpoint_through = "fast" }
"""
PLATFORM = """
title = "Two tiers"
extends = "local"
[storage.slow]
path = "{0}/slow"
roles = ["checkpoint"]
[storage.fast]
path = "{0}/fast"
roles = ["fast"]
"""
BOX = """
[frameworks.null.container]
engine = "bwrap"
image = "/"
interpreter = "{0}"
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    for tier in ("slow", "fast"):
        (folder / tier).mkdir()
    (folder / "tiers.toml").write_text(PLATFORM.format(folder), "utf-8")
    (folder / "saving.toml").write_text(STUDY, "utf-8")
    done = bakeoff("run", "saving.toml", "--platform", "./tiers.toml", cwd=folder)
    assert "Checkpoints:" in done.stdout, done.stdout + done.stderr
    return folder


def test_every_trial_proved_that_its_checkpoint_restores(run: Path) -> None:
    proofs = [
        json.loads(line)
        for file in run.glob("runs/*/cells/*/trial-1/events.0.jsonl")
        for line in file.read_text("utf-8").splitlines()
        if '"restored"' in line
    ]
    assert [one["files_true"] and one["state_true"] for one in proofs] == [True, True]


def test_nothing_stays_on_the_tiers(run: Path) -> None:
    assert [*(run / "slow").iterdir(), *(run / "fast").iterdir()] == []


def test_the_page_lays_out_what_they_cost(run: Path) -> None:
    done = bakeoff("report", *(path.name for path in (run / "runs").iterdir()), cwd=run)
    assert done.returncode == 0, done.stderr
    (page,) = run.rglob("*.html")
    text = page.read_text("utf-8")
    assert "What checkpoints cost, and when they were safe" in text
    assert "whole on fast" in text
    assert "durable on slow" in text


@pytest.mark.parametrize(
    ("factors", "why"),
    [
        ('checkpoint_to = "slow"', "checkpoint_to says where, and nothing how often"),
        ('checkpoint_every = 1\ncheckpoint_to = "tape"', "has no storage tier 'tape'"),
        (
            'checkpoint_every = 1\ncheckpoint_to = "slow"\ncheckpoint_through = "slow"',
            "through the tier that it stays on",
        ),
    ],
)
def test_what_cannot_be_saved_is_a_hole_with_its_reason(
    factors: str, why: str, run: Path, tmp_path: Path
) -> None:
    study = tmp_path / "hole.toml"
    study.write_text(
        f'title = "A hole"\n[matrix]\nworkload = "tinycnn"\nframework = "null"\n{factors}\n'
        '[[include]]\nworkload = "nothing"\nframework = "null"\n',
        "utf-8",
    )
    done = bakeoff("plan", str(study), "--platform", str(run / "tiers.toml"), cwd=run)
    assert why in done.stdout + done.stderr


def test_a_container_saves_to_the_tiers_outside(tmp_path: Path) -> None:
    needs.program("bwrap", package="bubblewrap")
    for tier in ("slow", "fast"):
        (tmp_path / tier).mkdir()
    box = PLATFORM.format(tmp_path) + BOX.format(sys.executable)
    (tmp_path / "tiers.toml").write_text(box, "utf-8")
    inside = STUDY.replace('framework = "null"', 'framework = "null"\ncontainer = true')
    (tmp_path / "saving.toml").write_text(inside, "utf-8")
    done = bakeoff("run", "saving.toml", "--platform", "./tiers.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [*(tmp_path / "slow").iterdir(), *(tmp_path / "fast").iterdir()] == []
