"""These tests hold what adding blocks to a finished run does, and what the page says of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.analysis.analyse import analyse
from harness.errors import RunError
from harness.plan.plan import Plan, make_plan
from harness.platform.platform import load_platform
from harness.run.further_blocks import add_blocks
from harness.run.session import resume, start
from harness.run.trust import NOTHING, Trust
from harness.store.dataset import Dataset
from harness.store.layout import RunPaths, TrialName
from harness.store.run_directory.due import read_due
from harness.study.study import load_study
from tests.run.test_session import STUDY, Listener
from tests.runs import Behaviour, RecordedCell, Recording, write_run


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    return make_plan(load_study(study), load_platform("local"))


def begun(plan: Plan, root: Path) -> RunPaths:
    start(plan, root=root, study_text=STUDY, observer=Listener())
    return RunPaths(root)


def test_added_blocks_are_carried_out_and_nothing_else_is_repeated(
    plan: Plan, tmp_path: Path
) -> None:
    paths, told = begun(plan, tmp_path / "run"), Listener()
    add_blocks(paths.root, 2, trust=NOTHING)
    result = resume(paths.root, observer=told)
    assert (result.total, result.ok) == (8, 8)
    assert [one.trial for _, one in told.ended] == ["trial-3", "trial-3", "trial-4", "trial-4"]
    stored = json.loads(paths.plan.read_text())
    assert stored["order"][:4] == [list(one) for one in plan.order]
    assert stored["measure"]["added"] == [2]
    assert stored["looks"] == [2]
    results = analyse(Dataset([paths.root]))
    assert not any("changed" in one for one in results.warnings)
    assert any("after the answers of 2 blocks had been seen" in one for one in results.warnings)


def test_blocks_are_added_again(plan: Plan, tmp_path: Path) -> None:
    paths = begun(plan, tmp_path / "run")
    add_blocks(paths.root, 1, trust=NOTHING)
    resume(paths.root, observer=Listener())
    add_blocks(paths.root, 1, trust=NOTHING)
    assert json.loads(paths.plan.read_text())["measure"]["added"] == [2, 3]
    assert read_due(paths).left().total() == 2


def test_a_run_with_trials_to_be_run_gets_no_further_ones(plan: Plan, tmp_path: Path) -> None:
    paths = begun(plan, tmp_path / "run")
    before = paths.plan.read_text()
    key, _ = plan.order[-1]
    paths.trial(key, TrialName(2)).outcome.unlink()
    with pytest.raises(RunError, match="still has 1 planned trial to run"):
        add_blocks(paths.root, 1, trust=NOTHING)
    assert paths.plan.read_text() == before


def test_blocks_that_a_session_would_refuse_are_not_added(plan: Plan, tmp_path: Path) -> None:
    paths = begun(plan, tmp_path / "run")
    before = paths.plan.read_text()
    loop = paths.payload / "harness" / "worker" / "loop.py"
    loop.write_text(loop.read_text() + "\n")
    with pytest.raises(RunError, match=r"differs in 'harness/worker/loop\.py'"):
        add_blocks(paths.root, 1, trust=NOTHING, mix=False)
    assert paths.plan.read_text() == before
    add_blocks(paths.root, 1, trust=NOTHING, mix=True)
    assert read_due(paths).left().total() == 2


def test_a_plan_that_somebody_edited_stays_one_that_somebody_edited(
    plan: Plan, tmp_path: Path
) -> None:
    paths = begun(plan, tmp_path / "run")
    paths.plan.write_text(paths.plan.read_text().replace('"Null"', '"Nil"'))
    with pytest.raises(RunError, match=r"plan\.json was changed since"):
        add_blocks(paths.root, 1, trust=NOTHING)
    add_blocks(paths.root, 1, trust=Trust(plan=True))
    warnings = analyse(Dataset([paths.root])).warnings
    assert any("plan.json was changed after it was made" in one for one in warnings)


def extended(folder: Path, *frameworks: str, added: list[int], **measure: object) -> Dataset:
    quiet = Behaviour(trial_noise=0.01, window_noise=0.004)
    cells = [RecordedCell(framework=name, behaviour=quiet) for name in frameworks]
    measure = {"trials": 6, "added": added, **measure}
    run = write_run(folder, cells, Recording(trials=14, measure=measure))
    plan = RunPaths(run).plan
    plan.write_text(json.dumps({**json.loads(plan.read_text()), "looks": [6]}))
    return Dataset([run])


@pytest.mark.parametrize(
    ("added", "level", "whole"), [([], 0.95, None), ([6], 0.975, "7.5 %"), ([6, 9], 0.9875, "8.75")]
)
def test_each_further_look_may_err_half_as_often_as_the_one_before(
    tmp_path: Path, added: list[int], level: float, whole: str | None
) -> None:
    results = analyse(extended(tmp_path, "torch", "jax", added=added))
    comparison = next(one for one in results.cells if one.framework == "jax").comparison
    assert comparison is not None
    assert comparison.interval is not None
    assert comparison.interval.level == pytest.approx(level)
    said = [one for one in results.warnings if one.startswith("Blocks were added")]
    assert [whole in one for one in said] == ([] if whole is None else [True])


def test_a_sequence_that_holds_at_every_look_pays_nothing_for_one(tmp_path: Path) -> None:
    results = analyse(extended(tmp_path, "torch", "jax", added=[6], stop="answered"))
    comparison = next(one for one in results.cells if one.framework == "jax").comparison
    assert comparison is not None
    assert comparison.interval is not None
    assert comparison.interval.level == pytest.approx(0.95)
