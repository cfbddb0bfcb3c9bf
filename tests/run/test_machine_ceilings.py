"""Measure what a machine can do at most once: on the null framework, whose kernels take no time."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from harness import user_folders
from harness.doctor import known_ceilings
from harness.plan import ceiling_cells
from harness.plan.duration import estimate
from harness.plan.plan import Plan, make_plan
from harness.platform.platform import load_platform
from harness.run.session import resume, start
from harness.store.layout import RunPaths, TrialPaths
from harness.store.record_readers.ceilings import LAYER, REFUSED, Reached, read_ceilings
from harness.study.framework import framework_info
from harness.study.study import load_study
from tests.outcomes import seal
from tests.run.test_probes import Listener

STUDY = """title = "Null"
[matrix]
workload = ["tinycnn"]
framework = "null"
batch = [1, 2]
[measure]
trials = 1
reruns = 0
turns = false
warmup = "3 steps"
until = "20 ms"
"""


def claim(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("XDG_STATE_HOME", str(folder / "state"))
    claimed = dataclasses.replace(framework_info("null"), kinds=("train", "ceiling"))
    patch.setattr(ceiling_cells, "framework_info", lambda _: claimed)


def plan_in(folder: Path) -> Plan:
    study = folder / "study.toml"
    study.write_text(STUDY)
    return make_plan(load_study(study), load_platform())


@pytest.fixture(autouse=True)
def _claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim(tmp_path, monkeypatch)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return plan_in(tmp_path)


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Measure once; give the folder with the run and with what was kept of it."""
    place = tmp_path_factory.mktemp("once")
    with pytest.MonkeyPatch.context() as patch:
        claim(place, patch)
        run(plan_in(place), place / "first")
    return place


@pytest.fixture
def first(once: Path, tmp_path: Path) -> Path:
    """Give a copy of the run, after which this test's user has what was kept of it."""
    for name in ("first", "state"):
        shutil.copytree(once / name, tmp_path / name)
    return tmp_path / "first"


def run(plan: Plan, root: Path) -> list[str]:
    listener = Listener()
    start(plan, root=root, study_text=STUDY, observer=listener)
    return listener.ended


def test_a_run_measures_ceilings_once_after_its_trials_and_the_next_run_knows_them(
    plan: Plan, tmp_path: Path
) -> None:
    assert run(plan, tmp_path / "first") == ["trial-1", "trial-1", "ceilings"]
    paths = RunPaths(tmp_path / "first")
    found = read_ceilings(paths)
    assert [one.reached.kernel for one in sorted(found, key=lambda one: one.reached.kernel)] == [
        "convolution",
        "gemm",
        "triad",
    ]
    (job,) = paths.cells.glob("*/ceilings/job.json")
    assert json.loads(job.read_text())["purpose"] == "ceilings"
    assert {one.measured_in for one in found} == {f"first/{job.parent.relative_to(paths.root)}"}
    assert {one.reached.unit for one in found} == {"FLOP", "bytes"}

    assert run(plan, tmp_path / "second") == ["trial-1", "trial-1"]
    assert set(read_ceilings(RunPaths(tmp_path / "second"))) == set(found)


def test_layers_that_a_job_had_no_time_for_are_left_to_the_next_run(
    plan: Plan, first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed = dataclasses.replace(framework_info("null"), kinds=("train", "ceiling", "layer"))
    monkeypatch.setattr(ceiling_cells, "framework_info", lambda _: claimed)
    (one, *_) = read_ceilings(RunPaths(first))
    layers = [list(ceiling_cells.layer_words(cell)) for cell in plan.cells]
    lacking = layers[1].pop()
    for words in (*layers[0], *layers[1]):
        timed = dataclasses.replace(one, reached=Reached(words, LAYER, 1.0, None))
        known_ceilings.learn(plan.platform.name, [timed])

    assert run(plan, tmp_path / "second") == ["trial-1", "trial-1", "ceilings"]
    (job,) = (tmp_path / "second").glob("cells/*/ceilings/job.json")
    assert job.parent.parent.name == plan.cells[1].key
    known = json.loads(job.read_text())["known"]
    assert sorted(known) == sorted(["convolution", "gemm", "triad", *layers[1]])

    refused = dataclasses.replace(one, reached=Reached(lacking, REFUSED, 1e-9, None))
    known_ceilings.learn(plan.platform.name, [refused])
    assert run(plan, tmp_path / "third") == ["trial-1", "trial-1"]
    assert lacking not in {x.reached.kernel for x in read_ceilings(RunPaths(tmp_path / "third"))}


@pytest.mark.usefixtures("first")
def test_what_is_kept_of_another_precision_is_measured_and_not_taken(
    plan: Plan, tmp_path: Path
) -> None:
    (file,) = (user_folders.state_home() / "ceilings").iterdir()
    kept = json.loads(file.read_text())
    for one in kept["ceilings"]:
        one["under"]["precision"] = "bf16"
    file.write_text(json.dumps(kept))
    assert run(plan, tmp_path / "second")[-1] == "ceilings"
    assert {one.under.precision for one in read_ceilings(RunPaths(tmp_path / "second"))} == {"fp32"}
    precisions = {one.under.precision for one in known_ceilings.known(plan.platform.name)}
    assert precisions == {"fp32", "bf16"}


def test_the_highest_of_each_kind_is_kept(plan: Plan, first: Path) -> None:
    (one, *_) = read_ceilings(RunPaths(first))
    for times in (3.0, 0.5):
        per_s = one.reached.per_s * times
        faster = dataclasses.replace(one, reached=dataclasses.replace(one.reached, per_s=per_s))
        known_ceilings.learn(plan.platform.name, [faster])
    kept = known_ceilings.known(plan.platform.name)
    rates = [each.reached.per_s for each in kept if each.reached.kernel == one.reached.kernel]
    assert rates == [pytest.approx(3 * one.reached.per_s)]


@pytest.mark.parametrize("text", ["{", "[]", '{"version": 9, "ceilings": []}', '{"version": 1}'])
@pytest.mark.usefixtures("first")
def test_what_is_kept_and_damaged_is_not_known(plan: Plan, text: str) -> None:
    (file,) = (user_folders.state_home() / "ceilings").iterdir()
    assert known_ceilings.known(plan.platform.name)
    file.write_text(text)
    assert known_ceilings.known(plan.platform.name) == ()


def test_a_job_that_was_cut_off_is_made_again(plan: Plan, tmp_path: Path) -> None:
    run(plan, tmp_path / "run")
    paths = RunPaths(tmp_path / "run")
    (outcome,) = paths.cells.glob("*/ceilings/outcome.json")
    outcome.write_text(json.dumps({**json.loads(outcome.read_text()), "outcome": "cancelled"}))
    seal(TrialPaths(outcome.parent))
    for file in (user_folders.state_home() / "ceilings").iterdir():
        file.unlink()
    (paths.cells / plan.cells[0].key / "trial-1" / "outcome.json").unlink()
    listener = Listener()
    resume(paths.root, observer=listener)
    assert listener.ended == ["trial-1", "ceilings"]


def test_the_plan_counts_one_job_for_cells_alike(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_one = estimate(plan).total_s
    monkeypatch.setattr(ceiling_cells, "framework_info", framework_info)
    without = estimate(plan).total_s
    assert 0 < with_one - without < 15


def test_a_job_that_was_cut_off_last_is_made_again_by_a_run_that_is_complete(
    plan: Plan, tmp_path: Path
) -> None:
    run(plan, tmp_path / "run")
    paths = RunPaths(tmp_path / "run")
    (outcome,) = paths.cells.glob("*/ceilings/outcome.json")
    outcome.write_text(json.dumps({**json.loads(outcome.read_text()), "outcome": "cancelled"}))
    seal(TrialPaths(outcome.parent))
    for file in (user_folders.state_home() / "ceilings").iterdir():
        file.unlink()
    listener = Listener()
    resume(paths.root, observer=listener)
    assert listener.ended == ["ceilings"]
    assert len(read_ceilings(paths)) == 3
