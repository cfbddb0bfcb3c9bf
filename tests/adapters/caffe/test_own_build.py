"""Examine and time a Caffe that the user has built; without one, nothing here runs.

    BAKEOFF_CAFFE=/opt/caffe/build/tools/caffe BAKEOFF_CAFFE_PYTHON=/opt/caffe/bin/python \\
        python -m pytest tests/adapters/caffe/test_own_build.py

The program has to be a build of its own pycaffe's, which that interpreter imports.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.gate import gate
from harness.gate.result import Result
from harness.plan.plan import Plan, make_plan
from harness.platform.platform import load_platform
from harness.ranks import payload
from harness.run.session import start
from harness.store.dataset import Dataset
from harness.store.records import IN_PART
from harness.study.study import load_study
from tests.adapters.listener import Listener

PROGRAM, PYTHON = os.environ.get("BAKEOFF_CAFFE"), os.environ.get("BAKEOFF_CAFFE_PYTHON")
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not PROGRAM or not PYTHON,
        reason="set BAKEOFF_CAFFE to your caffe program, and BAKEOFF_CAFFE_PYTHON to an "
        "interpreter that imports its pycaffe",
    ),
]
STUDY = """title = "A user's own Caffe"
[matrix]
workload = {workloads}
framework = "caffe"
batch = 8
[measure]
trials = 2
warmup = "3 steps"
until = "2 s"
"""


@pytest.fixture
def planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("CAFFE_BIN", str(PROGRAM))
    platform = tmp_path / "own.toml"
    text = f'title = "here"\nextends = "local"\n[frameworks.caffe]\ninterpreter = "{PYTHON}"\n'
    platform.write_text(text, encoding="utf-8")

    def plan(*workloads: str) -> Plan:
        study = tmp_path / "study.toml"
        study.write_text(STUDY.format(workloads=json.dumps(workloads)), encoding="utf-8")
        return make_plan(load_study(study), load_platform(str(platform)))

    return plan


def _examined(plan: Plan, folder: Path) -> dict[str, Result]:
    results = gate.ensure(plan, kept=folder / "gate")
    return {cell.workload: results[cell.key] for cell in plan.cells}


def test_layers_and_the_solver_s_updates_agree(planned: Any, tmp_path: Path) -> None:
    for workload, result in _examined(planned("tinycnn", "neuron-inverter"), tmp_path).items():
        assert result.state == IN_PART, (workload, result)
        assert "and the optimiser's updates" in result.detail


def test_a_bias_that_learns_twice_as_fast_is_caught(planned: Any, tmp_path: Path) -> None:
    gathered, file = payload.gather(), "harness/worker/adapters/caffe/lowering.py"
    text = gathered.contents()[file].decode()
    wrong = tmp_path / "lowering.py"
    wrong.write_text(text.replace('PLAIN = [("lr_mult", 1)', 'PLAIN = [("lr_mult", 2)'), "utf-8")
    changed = replace(gathered, files={**gathered.files, file: wrong})
    results = gate.ensure(planned("tinycnn"), payload=changed, kept=tmp_path / "gate")
    (result,) = results.values()
    assert "after update 1 of its own gradients is 1.0e+00 off" in result.detail, (
        "norms learn so too"
    )


def test_a_session_measures_it_and_times_its_layers_once(planned: Any, tmp_path: Path) -> None:
    plan = planned("tinycnn")

    start(plan, root=tmp_path / "run", study_text="", observer=Listener())
    trials = Dataset([tmp_path / "run"]).trials
    assert {trial.outcome.ended for trial in trials} == {"ok"}
    assert len(list(tmp_path.glob("run/caches/*/caffe/*.log"))) == 1
    assert len(list(tmp_path.glob("run/cells/*/probe/caffe/time.log"))) == 1
    assert list(tmp_path.glob("run/cells/*/trial-*/caffe/time.log")) == []
