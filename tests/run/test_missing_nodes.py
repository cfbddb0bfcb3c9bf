"""These tests hold a session whose nodes die to running what is left of its work."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import Unavailable
from harness.run.session import resume, start
from harness.spec.plan import Plan, make_plan
from harness.spec.platform import load_platform
from harness.spec.study import load_study
from tests.run.test_session import Listener

STUDY = """title = "Null"
[matrix]
workload = "tinycnn"
framework = "null"
strategy = "ddp"
nodes = [1, 2]
[measure]
trials = 2
warmup = "3 steps"
until = "20 ms"
tolerate = ["contended", "throttled", "stalled"]
"""
PLATFORM = """title = "Two names of this machine"
nodes = 2
[launcher]
name = "ssh"
settings = {{ hosts = "n[1-2]", command = "sh {ssh}" }}
[binding]
oversubscribe = true
[observer]
cores = 0
"""
# Goes nowhere, but takes its words as ssh does; n2 answers while the file is there.
SSH = """#!/bin/sh
while [ "$1" = -o ]; do shift 2; done
test "$1" = n1 -o -e {alive} || {{ echo "connect to n2: No route to host" >&2; exit 255; }}
shift
exec sh -c "$*"
"""


@pytest.fixture
def alive(tmp_path: Path) -> Path:
    return tmp_path / "n2-is-alive"


@pytest.fixture
def plan(tmp_path: Path, alive: Path) -> Plan:
    for name, text in {"study.toml": STUDY, "there.toml": PLATFORM, "ssh": SSH}.items():
        filled = text if name == "study.toml" else text.format(ssh=tmp_path / "ssh", alive=alive)
        (tmp_path / name).write_text(filled)
    return make_plan(
        load_study(tmp_path / "study.toml"), load_platform(str(tmp_path / "there.toml"))
    )


def test_narrower_trials_go_on_and_wider_ones_wait_for_nodes(plan, tmp_path, alive):
    listener = Listener()
    result = start(plan, root=tmp_path / "run", study_text=STUDY, observer=listener)
    assert (result.done, result.ok, result.waiting, result.skipped) == (2, 2, 2, 0)
    assert [note for note in listener.notes if "there offers 1 of 2 nodes here." in note]
    alive.touch()
    result = resume(tmp_path / "run", observer=Listener())
    assert (result.done, result.ok, result.waiting) == (4, 4, 0)


def test_where_nothing_can_be_run_that_is_the_answer(plan, tmp_path):
    wide = [cell.key for cell in plan.cells if cell.factors["nodes"] == 2]
    start(plan, root=tmp_path / "run", study_text=STUDY, observer=Listener())
    with pytest.raises(Unavailable, match="there offers 1 of 2 nodes here"):
        resume(tmp_path / "run", only=wide, observer=Listener())
