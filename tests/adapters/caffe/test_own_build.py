"""Examine and time a Caffe that the user has built; without one, nothing here runs.

    BAKEOFF_CAFFE=/opt/caffe/build/tools/caffe BAKEOFF_CAFFE_PYTHON=/opt/caffe/bin/python \\
        python -m pytest tests/adapters/caffe/test_own_build.py

The program has to be a build of its own pycaffe's, which that interpreter imports. Intel's flavour
has BAKEOFF_INTEL_CAFFE and BAKEOFF_INTEL_CAFFE_PYTHON.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.data.create import create
from harness.data.sets import DataSetSpec
from harness.gate import gate
from harness.gate.result import Result
from harness.plan.plan import Plan, make_plan
from harness.platform.platform import load_platform
from harness.ranks import payload
from harness.run.session import start
from harness.run.storage.tiers import data_sets
from harness.store.dataset import Dataset
from harness.store.records import IN_PART
from harness.study.study import load_study
from tests.adapters.listener import Listener

pytestmark = pytest.mark.long
BUILDS = {"caffe": ("CAFFE", "CAFFE_BIN"), "caffe@intel": ("INTEL_CAFFE", "INTEL_CAFFE_BIN")}
STUDY = """title = "A user's own Caffe"
[matrix]
workload = {workloads}
framework = "{framework}"
batch = 8
{more}
[measure]
trials = 2
warmup = "3 steps"
until = "2 s"
"""


@pytest.fixture(params=BUILDS)
def planned(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    framework: str = request.param
    of, variable = BUILDS[framework]
    program, python = (os.environ.get(f"BAKEOFF_{of}{end}") for end in ("", "_PYTHON"))
    if not program or not python:
        pytest.skip(
            f"set BAKEOFF_{of} to your {framework} program, and BAKEOFF_{of}_PYTHON to an "
            "interpreter that imports its pycaffe"
        )
    platform = tmp_path / "own.toml"
    platform.write_text(
        f'title = "here"\nextends = "local"\n[frameworks."{framework}"]\n'
        f'interpreter = "{python}"\nenvironment = {{ {variable} = "{program}" }}\n',
        encoding="utf-8",
    )

    def plan(*workloads: str, more: str = "") -> Plan:
        study = tmp_path / "study.toml"
        text = STUDY.format(workloads=json.dumps(workloads), framework=framework, more=more)
        study.write_text(text, encoding="utf-8")
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


@pytest.mark.parametrize("form", ["datum", "leveldb"])
def test_it_trains_from_databases_of_ours(
    form: str, planned: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path / "home"))
    plan = planned("tinycnn", more=f'input = "files"\nformat = "{form}"\nsamples = 64')
    for _, folder in data_sets(plan):
        create(DataSetSpec("tiny-pictures", form, 64), folder, doing=lambda _: None)
    start(plan, root=tmp_path / "run", study_text="", observer=Listener())
    assert {trial.outcome.ended for trial in Dataset([tmp_path / "run"]).trials} == {"ok"}


def test_a_session_measures_it_and_times_its_layers_once(planned: Any, tmp_path: Path) -> None:
    plan = planned("tinycnn")

    start(plan, root=tmp_path / "run", study_text="", observer=Listener())
    trials = Dataset([tmp_path / "run"]).trials
    assert {trial.outcome.ended for trial in trials} == {"ok"}
    assert len(list(tmp_path.glob("run/caches/*/caffe/*.log"))) == 1
    assert len(list(tmp_path.glob("run/cells/*/probe/caffe/time.log"))) == 1
    assert list(tmp_path.glob("run/cells/*/trial-*/caffe/time.log")) == []
