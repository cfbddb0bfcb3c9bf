"""Train with a stand-in SINGA, in an interpreter that SINGA_PYTHON names.

Nothing here says anything about SINGA's speed, and only its interface about SINGA itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.plan.plan import make_plan
from harness.platform.platform import load_platform
from harness.run.session import start
from harness.study.study import load_study
from harness.worker import job as jobs
from harness.worker.adapters.singa.adapter import dotted
from tests.adapters.interpreter import losses, told, work_with
from tests.adapters.listener import Listener
from workloads.tinycnn import WORKLOAD

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


def python(folder: Path) -> Path:
    """Make an interpreter that has the stand-in."""
    path = folder / "python"
    text = f'#!/bin/sh\nPYTHONPATH="{HERE / "stand_in"}:$PYTHONPATH" exec {sys.executable} "$@"\n'
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def work(folder: Path, **fields: Any) -> list[dict[str, Any]]:
    given = {"factors": {"batch": 8, "threads": 1}, "until": jobs.Span(steps=20), **fields}
    return work_with(python(folder), "singa", folder, **given)


def test_tinycnn_trains_with_the_published_parameters_and_its_loss_falls(tmp_path: Path) -> None:
    events = work(tmp_path)
    assert told(events, "finished")
    assert told(events, "identity")["lowered"] == WORKLOAD.parameters
    assert losses(events)[-1] < losses(events)[0] * 0.7
    assert "stand-in" in told(events, "versions")["versions"]["singa"]


def test_lines_and_adam_train_too(tmp_path: Path) -> None:
    events = work(
        tmp_path,
        workload_module="tests.adapters.singa.line",
        until=jobs.Span(steps=60),
    )
    assert told(events, "finished")
    assert losses(events)[-1] < losses(events)[0]


@pytest.mark.parametrize(
    ("module", "factors", "reason"),
    [
        ("alexnet_caffe", {}, "SINGA has no layer for 'norm1' (LRN)"),
        ("cosmoflow", {}, "SINGA has no layers for volumes"),
    ],
)
def test_what_singa_lacks_is_an_honest_hole(
    tmp_path: Path, module: str, factors: dict[str, Any], reason: str
) -> None:
    events = work(tmp_path, workload_module=f"workloads.{module}", factors={"batch": 1, **factors})
    failed = told(events, "failed")
    assert failed["kind"] == "unsupported"
    assert failed["message"] == reason


def test_a_version_that_is_a_number_reads_as_people_write_it() -> None:
    assert [dotted(one) for one in (5100, 3100, "5100", "4.3.0")] == [
        "5.1.0",
        "3.1.0",
        "5.1.0",
        "4.3.0",
    ]


PLANNED = """title = "SINGA's holes"
[matrix]
workload = "{}"
framework = ["singa", "caffe", "torch"]
compile = [false, true]
"""


@pytest.mark.parametrize(
    ("workload", "whys"),
    [
        ("alexnet-caffe", {"SINGA has no layer for LRN"}),
        (
            "cosmoflow",
            {
                "SINGA has no layers for volumes",
                "Caffe pools pictures only; this network has volumes",
            },
        ),
        (
            "tinyvit",
            {
                "SINGA's autograd has no attention and no norm of each position",
                "Caffe has no layer for sequences of vectors",
            },
        ),
        (
            "resnet50",
            {"SINGA 5.1 crashes on a CPU in graph mode with ResNet-50 (with tinycnn it does not)"},
        ),
        ("tinycnn", set()),
    ],
)
def test_holes_that_are_known_stand_in_the_plan(
    tmp_path: Path, workload: str, whys: set[str]
) -> None:
    study = tmp_path / "study.toml"
    study.write_text(PLANNED.format(workload), encoding="utf-8")
    plan = make_plan(load_study(study), load_platform())
    found = {hole.why for hole in plan.holes}
    assert found - {"caffe does not offer compile true (it has: false)"} == whys


def test_layers_compute_what_the_vocabulary_says(tmp_path: Path) -> None:
    made = subprocess.run(
        [python(tmp_path), HERE / "inside.py"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    assert made.stdout == "fine\n"


STUDY = """title = "SINGA"
[matrix]
workload = "tinycnn"
framework = "singa"
batch = 2
[measure]
trials = 1
warmup = "3 steps"
until = "4 steps"
"""


def test_a_session_finds_the_interpreter_and_marks_the_stand_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SINGA_PYTHON", str(python(tmp_path)))
    study = tmp_path / "study.toml"
    study.write_text(STUDY, encoding="utf-8")
    plan = make_plan(load_study(study), load_platform())
    start(plan, root=tmp_path / "run", study_text=STUDY, observer=Listener())
    outcomes = [json.loads(p.read_text()) for p in tmp_path.glob("run/cells/*/*/outcome.json")]
    assert {(one["outcome"], one["origin"]) for one in outcomes} == {("ok", "stand-in")}
