"""Check when cells are probed, on the null framework, which has nothing to probe."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.analysis.analyse import analyse
from harness.plan.plan import Plan, make_plan
from harness.platform.platform import load_platform
from harness.run.session import resume, start
from harness.run.trials import untimed_jobs
from harness.store.dataset import Dataset
from harness.store.layout import RunPaths
from harness.store.record_readers.attribution import read_attribution
from harness.study.framework import framework_info
from harness.study.study import load_study
from harness.worker.scale import Scale
from tests.outcomes import record

STUDY = """title = "Null"
[matrix]
workload = ["nothing"]
framework = "null"
[measure]
trials = 1
reruns = 0
warmup = "3 steps"
until = "20 ms"
"""


class Listener:
    """Remembers which trials ended, and what was noted."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.said: list[str] = []

    def progressed(self, progress: object) -> None:
        pass

    def trial_ended(self, progress: object, ended: object) -> None:
        self.ended.append(ended.trial)  # type: ignore[attr-defined]

    def doing(self, text: str) -> None:
        pass

    def noted(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    return make_plan(load_study(study), load_platform())


@pytest.fixture
def probed(monkeypatch: pytest.MonkeyPatch) -> None:
    claimed = dataclasses.replace(framework_info("null"), has_probe=True)
    monkeypatch.setattr(untimed_jobs, "framework_info", lambda _: claimed)


def run(plan: Plan, root: Path) -> list[str]:
    listener = Listener()
    result = start(plan, root=root, study_text=STUDY, observer=listener)
    assert (result.done, result.total, result.ok) == (1, 1, 1)
    return listener.ended


def test_a_framework_without_a_probe_is_not_probed(plan: Plan, tmp_path: Path) -> None:
    assert run(plan, tmp_path / "run") == ["trial-1"]


@pytest.mark.usefixtures("probed")
def test_a_study_that_explains_nothing_has_its_trials_alone(plan: Plan, tmp_path: Path) -> None:
    bare = dataclasses.replace(plan, measure=dataclasses.replace(plan.measure, explain=False))
    assert run(bare, tmp_path / "run") == ["trial-1"]
    assert resume(tmp_path / "run", observer=Listener()).ok == 1
    assert not RunPaths(tmp_path / "run").probe(plan.cells[0].key).root.exists()


@pytest.mark.usefixtures("probed")
def test_a_trial_is_told_the_same_whether_its_cell_is_probed_or_not(
    plan: Plan, tmp_path: Path
) -> None:
    quiet = dataclasses.replace(plan, measure=dataclasses.replace(plan.measure, explain=False))
    assert run(plan, tmp_path / "probed") == ["probe", "trial-1"]
    assert run(quiet, tmp_path / "alone") == ["trial-1"]
    told = []
    for root in (tmp_path / "probed", tmp_path / "alone"):
        (job,) = root.glob("cells/*/trial-1/job.json")
        told.append(job.read_text(encoding="utf-8").replace(str(root), "RUN"))
    assert told[0] == told[1]


@pytest.mark.usefixtures("probed")
def test_a_probe_that_fails_is_recorded_and_warned_of_and_stops_nothing(
    plan: Plan, tmp_path: Path
) -> None:
    assert run(plan, tmp_path / "run") == ["probe", "trial-1"]
    paths = RunPaths(tmp_path / "run")
    probe = paths.probe(plan.cells[0].key)
    assert json.loads(probe.job.read_text())["purpose"] == "probe"
    assert json.loads(probe.outcome.read_text())["outcome"] == "unsupported"
    results = analyse(Dataset([paths.root]))
    assert any("its probe ended unsupported" in warning for warning in results.warnings)


@pytest.mark.usefixtures("probed")
def test_a_probe_is_made_once_and_one_that_was_cut_off_again(plan: Plan, tmp_path: Path) -> None:
    run(plan, tmp_path / "run")
    paths = RunPaths(tmp_path / "run")
    cell = plan.cells[0]
    assert not untimed_jobs.probe_is_due(paths, cell)
    probe = paths.probe(cell.key)
    outcome = json.loads(probe.outcome.read_text())
    probe.outcome.write_text(json.dumps({**outcome, "outcome": "cancelled"}))
    (paths.cells / cell.key / "trial-1" / "outcome.json").unlink()
    listener = Listener()
    resume(paths.root, observer=listener)
    assert listener.ended == ["probe", "trial-1"]
    assert len(list(paths.interrupted.iterdir())) == 2


@pytest.mark.usefixtures("probed")
def test_a_cell_whose_cold_trial_failed_is_not_probed(plan: Plan, tmp_path: Path) -> None:
    paths, cell = RunPaths(tmp_path), plan.cells[0]
    cold = paths.cold(cell.key)
    record(cold, "unsupported")
    assert not untimed_jobs.probe_is_due(paths, cell)


@pytest.fixture
def attributed(monkeypatch: pytest.MonkeyPatch) -> None:
    claimed = dataclasses.replace(framework_info("null"), attributes=True)
    monkeypatch.setattr(untimed_jobs, "framework_info", lambda _: claimed)
    trains = SimpleNamespace(value=SimpleNamespace(kind="train"))
    monkeypatch.setattr(untimed_jobs, "subject", lambda _: trains)


@pytest.mark.usefixtures("attributed")
def test_steps_are_attributed_after_all_trials_and_a_failure_is_the_reason_for_none(
    plan: Plan, tmp_path: Path
) -> None:
    assert run(plan, tmp_path / "run") == ["trial-1", "attribution"]
    paths, key = RunPaths(tmp_path / "run"), plan.cells[0].key
    job = json.loads(paths.attribution(key).job.read_text())
    assert job["purpose"] == "attribute"
    why = "the null adapter attributes no step to its layers"
    assert read_attribution(paths, key) == f"its step could not be attributed: {why}"
    assert not untimed_jobs.attribution_is_due(paths, plan.cells[0])


@pytest.mark.usefixtures("attributed")
def test_a_cell_without_a_trial_that_ended_well_is_not_attributed(
    plan: Plan, tmp_path: Path
) -> None:
    paths, cell = RunPaths(tmp_path), plan.cells[0]
    record(paths.trial(cell.key, "trial-1"), "failed")
    assert not untimed_jobs.attribution_is_due(paths, cell)
    record(paths.trial(cell.key, "trial-2"))
    assert untimed_jobs.attribution_is_due(paths, cell)


@pytest.mark.parametrize(
    ("devices_per_rank", "strategy", "is_due"),
    [(1, "ddp", True), (1, "horovod", False), (2, "ddp", False)],
)
@pytest.mark.usefixtures("attributed")
def test_steps_of_several_ranks_are_attributed_where_their_exchange_is_told(
    devices_per_rank: int,
    strategy: str,
    is_due: bool,
    plan: Plan,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tells = dataclasses.replace(untimed_jobs.framework_info(""), attributes_ranks=("ddp",))
    monkeypatch.setattr(untimed_jobs, "framework_info", lambda _: tells)
    scale = Scale(ranks_per_node=2, devices_per_rank=devices_per_rank)
    cell = dataclasses.replace(plan.cells[0], scale=scale, strategy=strategy)
    paths = RunPaths(tmp_path)
    record(paths.trial(cell.key, "trial-1"))
    assert untimed_jobs.attribution_is_due(paths, cell) == is_due


@pytest.mark.usefixtures("attributed")
@pytest.mark.parametrize("is_begun", [False, True])
def test_a_session_cut_off_before_steps_were_attributed_is_made_whole_by_resume(
    plan: Plan, tmp_path: Path, is_begun: bool
) -> None:
    run(plan, tmp_path / "run")
    paths = RunPaths(tmp_path / "run")
    cut_off = paths.attribution(plan.cells[0].key)
    if is_begun:
        outcome = json.loads(cut_off.outcome.read_text())
        cut_off.outcome.write_text(json.dumps({**outcome, "outcome": "cancelled"}))
    else:
        shutil.rmtree(cut_off.root)
    for expected in (["attribution"], []):
        listener = Listener()
        resume(paths.root, observer=listener)
        assert listener.ended == expected, cut_off.outcome.read_text()
    assert len(list(paths.interrupted.glob("*"))) == is_begun


@pytest.mark.usefixtures("attributed")
def test_steps_of_a_complete_run_whose_code_has_changed_stay_undivided_and_that_is_said(
    plan: Plan, tmp_path: Path
) -> None:
    run(plan, tmp_path / "run")
    paths = RunPaths(tmp_path / "run")
    shutil.rmtree(paths.attribution(plan.cells[0].key).root)
    known = json.loads(paths.run.read_text())
    known["accepted"] = dict.fromkeys(known["accepted"], "another")
    paths.run.write_text(json.dumps(known))
    listener = Listener()
    resume(paths.root, observer=listener)
    assert listener.ended == []
    assert any("cannot be divided among layers" in said for said in listener.said)


def trace(paths: RunPaths, key: str, *, longer: float) -> None:
    """Put steps in the place of those that were traced, so much longer than the timed ones."""
    (cell,) = analyse(Dataset([paths.root])).cells
    assert cell.rate is not None
    step_s = longer * cell.scale.batch_per_step / cell.rate.value
    trial = paths.attribution(key)
    record(trial)
    part = {"site": "", "phase": "other", "shares": [1.0], "operations": [], "more": 0}
    said = [
        {"event": "attribution", "traced_by": "a trace", "step_s": [step_s], "untraced_s": []},
        {"event": "part", **part},
    ]
    trial.events(0).write_text("".join(json.dumps({**one, "t": 1}) + "\n" for one in said))


@pytest.mark.usefixtures("attributed")
def test_steps_that_were_disturbed_while_they_were_traced_are_traced_again_at_most_twice(
    plan: Plan, tmp_path: Path
) -> None:
    run(plan, tmp_path / "run")
    paths, key = RunPaths(tmp_path / "run"), plan.cells[0].key
    for number in (2, 3):
        trace(paths, key, longer=1.5)
        listener = Listener()
        resume(paths.root, observer=listener)
        assert listener.ended == ["attribution"]
        assert any(f"traced again: {number} of at most 3" in said for said in listener.said)
    trace(paths, key, longer=1.5)
    listener = Listener()
    resume(paths.root, observer=listener)
    assert listener.ended == []
    assert len(list(paths.interrupted.iterdir())) == 2


@pytest.mark.usefixtures("attributed")
def test_steps_that_were_traced_as_they_were_timed_are_not_traced_again(
    plan: Plan, tmp_path: Path
) -> None:
    run(plan, tmp_path / "run")
    paths = RunPaths(tmp_path / "run")
    trace(paths, plan.cells[0].key, longer=1.1)
    listener = Listener()
    resume(paths.root, observer=listener)
    assert listener.ended == []
