"""Hold a resumed run to what its trials ran: variables and the files of packages, said in words."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.analysis.analyse import analyse
from harness.errors import RunError
from harness.plan.plan import Plan, make_plan
from harness.platform.platform import load_platform
from harness.run.session import lay_out_only, resume, start
from harness.store.dataset import Dataset
from harness.store.layout import RunPaths, TrialName
from harness.store.outcome import read_outcome
from harness.study.study import load_study
from harness.worker.redaction.places import HIDDEN
from tests.run.test_session import STUDY, Listener, forget

CAPABILITY = "ATEN_CPU_CAPABILITY"


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (tmp_path / "study.toml").write_text(STUDY)
    return make_plan(load_study(tmp_path / "study.toml"), load_platform())


@pytest.fixture
def run(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunPaths:
    """Give a run without that variable, with one trial left."""
    monkeypatch.delenv(CAPABILITY, raising=False)
    return begun(plan, tmp_path / "run")


def begun(plan: Plan, root: Path) -> RunPaths:
    start(plan, root=root, study_text=STUDY, observer=Listener())
    forget(RunPaths(root), *plan.order[-1])
    return RunPaths(root)


def test_another_variable_that_steers_a_library_is_refused_in_words(run, monkeypatch):
    monkeypatch.setenv(CAPABILITY, "default")
    with pytest.raises(RunError, match=r"What changed:\n    ATEN_CPU_CAPABILITY: unset → default"):
        resume(run.root, observer=Listener())


def test_trials_that_are_mixed_in_spite_of_it_say_what_changed(run, plan, monkeypatch):
    monkeypatch.setenv(CAPABILITY, "default")
    resume(run.root, mix=True, observer=Listener())
    key, block = plan.order[-1]
    assert read_outcome(run.trial(key, TrialName(block))).mixed
    warnings = " ".join(analyse(Dataset([run.root])).warnings)
    assert f"{CAPABILITY}: unset → default" in warnings
    seen = (
        "its trials did not see the same variables: ATEN_CPU_CAPABILITY: unset in 1, default in 1"
    )
    assert seen in warnings
    forget(run, key, block)
    monkeypatch.delenv(CAPABILITY)
    with pytest.raises(RunError, match="ATEN_CPU_CAPABILITY: default → unset"):
        resume(run.root, observer=Listener())


def test_every_trial_records_the_variables_that_its_worker_had(plan, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_PROC_BIND", "close")
    monkeypatch.setenv("KMP_PASSWORD", "hunter2")
    monkeypatch.setenv("FAVOURITE_COLOUR", "red")
    run = begun(plan, tmp_path / "run")
    for key, block in plan.order[:-1]:
        trial = run.trial(key, TrialName(block))
        events = map(json.loads, trial.events(0).read_text().splitlines())
        (facts,) = (one["facts"] for one in events if one["event"] == "facts")
        assert facts["variables"]["OMP_PROC_BIND"] == "close"
        assert facts["variables"]["KMP_PASSWORD"] == HIDDEN
        assert "FAVOURITE_COLOUR" not in facts["variables"]
        assert facts["variables"]["CUDA_CACHE_PATH"] == f"RUN/caches/{key}/cuda"


def test_a_variable_of_one_job_changes_nothing(run, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("FAVOURITE_COLOUR", "red")
    assert resume(run.root, observer=Listener()).ok == 4


def test_a_secret_among_the_variables_is_not_told(run, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_auth=hunter2 --xla_a=1")
    with pytest.raises(RunError, match=r"XLA_FLAGS: unset → .*--xla_a=1") as refused:
        resume(run.root, observer=Listener())
    assert "hunter2" not in str(refused.value)


def test_what_is_submitted_may_begin_with_the_variables_of_its_job(plan, tmp_path, monkeypatch):
    root = lay_out_only(plan, root=tmp_path / "run", study_text=STUDY, numbered=False)
    monkeypatch.setenv(CAPABILITY, "default")
    assert resume(root, observer=Listener()).ok == 4
    forget(RunPaths(root), *plan.order[-1])
    monkeypatch.delenv(CAPABILITY)
    with pytest.raises(RunError, match="ATEN_CPU_CAPABILITY: default → unset"):
        resume(root, observer=Listener())


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Give a package of an interpreter that a platform names."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", tmp_path / "own"],
        check=True,
    )
    (site,) = (tmp_path / "own").glob("lib/python3*/site-packages")
    (site / "helper").mkdir()
    (site / "helper" / "__init__.py").write_text("SPEED = 1\n")
    return site / "helper"


def test_a_package_that_was_edited_in_place_is_refused_in_words(tmp_path, package):
    platform = tmp_path / "mine.toml"
    interpreter = package.parents[3] / "bin" / "python"
    platform.write_text(
        f'title = "Mine"\n[launcher]\nname = "local"\n'
        f'[frameworks.null]\ninterpreter = "{interpreter}"\n'
    )
    (tmp_path / "study.toml").write_text(STUDY)
    plan = make_plan(load_study(tmp_path / "study.toml"), load_platform(str(platform)))
    run = begun(plan, tmp_path / "run")
    (package / "__init__.py").write_text("SPEED = 2\n")
    with pytest.raises(RunError, match=r"What changed:\n    null: the files of helper changed"):
        resume(run.root, observer=Listener())
    (package / "__init__.py").write_text("SPEED = 1\n")
    assert resume(run.root, observer=Listener()).ok == 4
    forget(run, *plan.order[-1])
    (package / "fast.so").write_bytes(b"\x7fELF")
    with pytest.raises(RunError, match="null: the files of helper changed"):
        resume(run.root, observer=Listener())
