"""Hold what the gate keeps to the machine and the switches that it was found with."""

from __future__ import annotations

from harness.environments.worker_python import Interpreter
from harness.gate import conditions, gate
from harness.plan.plan import make_plan
from harness.platform.platform import load_platform
from harness.study.study import load_study

STUDY = """
title = "One cell"
[matrix]
workload = "tinycnn"
framework = "null"
[measure]
trials = 1
warmup = "3 steps"
until = "5 steps"
"""


def test_another_machine_is_examined_anew(tmp_path, monkeypatch) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    plan = make_plan(load_study(tmp_path / "study.toml"), load_platform("local"))

    def results() -> int:
        gate.ensure(plan, kept=tmp_path / "kept")
        return len(list((tmp_path / "kept" / "results").iterdir()))

    first = results()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert results() == first, "a job's own devices are no other circumstances"
    machine = conditions.processors()
    monkeypatch.setattr(conditions, "processors", lambda: {**machine, "cpu": ["another"]})
    assert results() == 2 * first > 0


def test_what_a_platform_sets_and_the_switches_of_libraries_count() -> None:
    sets = {"SWITCH": "on"}
    platform = load_platform("local").model_copy(update={"environment": sets})
    env = {"ONEDNN_MAX_CPU_ISA": "SSE41", "LD_PRELOAD": "x.so", "HOME": "/", "SLURM_JOB_ID": "7"}
    env |= {"BEAM": "2", "ATEN_CPU_CAPABILITY": "default", "BEAMLINE": "7"}
    told = conditions.Circumstances(platform).of("null", Interpreter((), env, "", "", {}))
    others = {name: value for name, value in env.items() if name[0] in "OLA" or name == "BEAM"}
    assert told["variables"] == {**others, **sets}
    assert told["machine"].keys() == {"cpu", "gpus"}
