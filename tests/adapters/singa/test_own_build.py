"""Examine and time a SINGA that the user has built; without one, nothing here runs.

    BAKEOFF_SINGA_PYTHON=/opt/singa/bin/python \\
        python -m pytest tests/adapters/singa/test_own_build.py
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.gate import gate
from harness.plan.plan import Plan, make_plan
from harness.platform.platform import load_platform
from harness.run.session import start
from harness.store.dataset import Dataset
from harness.store.records import IN_PART
from harness.study.study import load_study
from tests.adapters.listener import Listener

PYTHON = os.environ.get("BAKEOFF_SINGA_PYTHON")
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not PYTHON,
        reason="set BAKEOFF_SINGA_PYTHON to an interpreter that imports your singa",
    ),
]
STUDY = """title = "A user's own SINGA"
[matrix]
workload = "tinycnn"
framework = "singa"
compile = [false, true]
batch = 8
[measure]
trials = 1
warmup = "3 steps"
until = "2 s"
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setenv("SINGA_PYTHON", str(PYTHON))
    study = tmp_path / "study.toml"
    study.write_text(STUDY, encoding="utf-8")
    return make_plan(load_study(study), load_platform())


def test_layers_and_updates_agree_and_graph_mode_is_left_open(plan: Plan, tmp_path: Path) -> None:
    results = gate.ensure(plan, kept=tmp_path / "gate")
    for cell in plan.cells:
        result = results[cell.key]
        assert result.state == IN_PART, result
        assert "and the optimiser's updates" in result.detail
        is_open = any("graph mode" in one for one in result.not_shown)
        assert is_open is bool(cell.factors["compile"])


def test_a_session_measures_it_in_both_modes(plan: Plan, tmp_path: Path) -> None:
    start(plan, root=tmp_path / "run", study_text=STUDY, observer=Listener())
    trials = Dataset([tmp_path / "run"]).trials
    assert [trial.outcome.ended for trial in trials] == ["ok", "ok"]
