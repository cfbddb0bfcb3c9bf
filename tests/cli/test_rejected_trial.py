"""A framework whose step trains nothing, in a whole run: rejected, and said so to the user."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import bakeoff

HASTY = '''"""Adapter of a framework that is fast because its step does nothing."""

import itertools


class Activity:
    def __init__(self, feed):
        self.units = {"images": float(feed.batch_per_rank)}
        self.held, self.taken = {}, itertools.count(1)

    def step(self):
        self.loss = sum(1 / next(self.taken) for _ in range(10000))

    def sync(self):
        pass

    def values(self):
        return {"loss": self.loss}

    def load(self, state):
        self.held.update((name, (one.shape, one.items())) for name, one in state.items())

    def give(self, given, target):
        self.batch = given.items(), target.items()

    def state(self):
        return ((name, shape, items) for name, (shape, items) in self.held.items())


class Adapter:
    def versions(self):
        return {"hasty": "1.0"}

    def activity(self, workload, feed, options):
        return Activity(feed)

    def facts(self):
        return {}

    def close(self):
        pass


def open(job, place):
    return Adapter()
'''
FILE = """title = "Hasty"
name = "hasty"
module = "hastily.hasty"
kinds = ["train"]
devices = ["cpu"]
distribution = "hasty"
proves = true
"""
STUDY = """title = "Hasty"
[matrix]
workload = "tinycnn"
framework = "hasty"
[measure]
trials = 1
reruns = 0
warmup = "3 steps"
until = "60 steps"
tolerate = ["contended", "throttled", "stalled"]
"""


@pytest.fixture
def hasty(tmp_path: Path) -> dict[str, str]:
    """Install the framework as a third party's package; give the environment that finds it."""
    information, package = tmp_path / "hastily-1.0.dist-info", tmp_path / "hastily"
    locks = tmp_path / "config" / "bakeoff" / "environments"
    for folder in (information, package, locks):
        folder.mkdir(parents=True)
    (information / "entry_points.txt").write_text("[bakeoff.adapters]\nany = hastily\n")
    (package / "__init__.py").write_text("")
    (package / "hasty.py").write_text(HASTY)
    (package / "hasty.toml").write_text(FILE)
    (locks / "hasty.toml").write_text('title = "Hasty"\npython = ">=3.7"\n')
    (tmp_path / "hasty-study.toml").write_text(STUDY)
    return {
        "PYTHONPATH": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "BAKEOFF_HOME": str(tmp_path / "home"),
    }


def test_a_step_that_does_nothing_is_rejected_in_words_on_the_page_and_by_the_exit_code(
    hasty: dict[str, str], tmp_path: Path
) -> None:
    ended = bakeoff("run", "hasty-study.toml", "--name", "hasty", cwd=tmp_path, **hasty)
    assert ended.returncode == 1, ended.stderr
    (outcome,) = tmp_path.glob("runs/hasty/cells/*/trial-1/outcome.json")
    found = json.loads(outcome.read_text())
    sentence = found["reason"]
    assert found["outcome"] == "failed"
    assert sentence.startswith("the step that was timed does not train the network any more")
    assert "one more step changes nothing" in sentence
    assert sentence in ended.stderr
    assert bakeoff("report", "runs/hasty", cwd=tmp_path, **hasty).returncode == 0
    assert sentence in (tmp_path / "runs" / "hasty" / "report.html").read_text()
