"""These tests hold when a study ends that goes on until its comparisons are answered."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.analyse import analyse, estimate_cells
from harness.analysis.blocks import answered
from harness.stats.repetition.repeat import Decision
from harness.store.dataset import Dataset
from harness.store.layout import RunPaths, TrialName
from tests.runs import Behaviour, RecordedCell, Recording, write_run

QUIET = Behaviour(trial_noise=0.005, window_noise=0.004)
TORCH = RecordedCell(framework="torch", behaviour=QUIET)
JAX = RecordedCell(framework="jax", behaviour=replace(QUIET, step_s=0.018))
CLOSE = RecordedCell(
    framework="mxnet", behaviour=replace(QUIET, step_s=0.02 / 1.03, trial_noise=0.03)
)
MEASURE = {"trials": 4, "stop": "answered"}
LOOKS = tuple(range(4, 31))


def recorded(folder: Path, *cells: RecordedCell, blocks: int) -> Path:
    run = write_run(folder, cells, Recording(trials=blocks, measure=MEASURE))
    plan = json.loads(RunPaths(run).plan.read_text())
    RunPaths(run).plan.write_text(json.dumps({**plan, "looks": LOOKS}))
    return run


def decided(folder: Path, *cells: RecordedCell, blocks: int, done: int | None = None) -> Decision:
    dataset = Dataset([recorded(folder, *cells, blocks=blocks)])
    (run,) = dataset.runs
    cells_told = estimate_cells(dataset)[run.info.name]
    return answered.judge(run, dataset.trials, cells_told, done or blocks)


def test_two_cells_that_differ_clearly_are_answered_at_the_first_look(tmp_path: Path) -> None:
    told = decided(tmp_path, TORCH, JAX, blocks=4)
    assert told.stop
    assert told.why == "every comparison is answered after 4 blocks"


def test_two_cells_that_hardly_differ_are_measured_on(tmp_path: Path) -> None:
    told = decided(tmp_path, TORCH, CLOSE, blocks=5)
    assert (told.stop, told.next_look, told.wide) == (False, 6, (CLOSE.key,))


def test_several_cells_wait_for_a_declared_look(tmp_path: Path) -> None:
    cells = (TORCH, JAX, replace(JAX, framework="tensorflow"))
    assert not decided(tmp_path / "7", *cells, blocks=7).stop
    assert decided(tmp_path / "8", *cells, blocks=8).stop
    assert decided(tmp_path / "9", *cells, blocks=9).stop


def test_a_decision_reads_no_later_block(tmp_path: Path) -> None:
    early = decided(tmp_path / "a", TORCH, CLOSE, blocks=5)
    assert decided(tmp_path / "b", TORCH, CLOSE, blocks=12, done=5) == early


def test_the_page_says_why_it_ended_and_what_the_interval_is(tmp_path: Path) -> None:
    results = analyse(Dataset([recorded(tmp_path, TORCH, JAX, blocks=4)]))
    assert "looked at after each block" in str(results.runs[0].repetition)
    (jax,) = (cell.comparison for cell in results.cells if cell.framework == "jax")
    assert jax is not None
    assert (jax.answer, jax.blocks) == ("faster", 4)
    assert jax.interval is not None
    assert "holds at every look" in jax.interval.meaning
    assert jax.ratio == pytest.approx(0.02 / 0.018, rel=0.02)
    assert not any("cannot tell, whatever" in warning for warning in results.warnings)


def without(run: Path, key: str, *, after: int) -> Path:
    """Remove the trials of a cell after a block, as if it had left then."""
    for block in range(after + 1, 31):
        shutil.rmtree(RunPaths(run).trial(key, TrialName(block)).root, ignore_errors=True)
    return run


def test_a_cell_that_is_answered_leaves_and_the_others_go_on(tmp_path: Path) -> None:
    told = decided(tmp_path, TORCH, JAX, CLOSE, blocks=8)
    assert (told.stop, told.wide) == (False, (CLOSE.key,))
    assert told.left == {JAX.key: 8}


def test_a_reference_leaves_with_the_last_of_its_cells(tmp_path: Path) -> None:
    other = replace(TORCH, workload="resnet50"), replace(CLOSE, workload="resnet50")
    told = decided(tmp_path, TORCH, JAX, *other, blocks=6)
    assert (told.stop, told.wide) == (False, (other[1].key,))
    assert told.left == {TORCH.key: 4, JAX.key: 4}


def test_an_answer_stays_as_it_was_at_the_look_where_it_fell(tmp_path: Path) -> None:
    run = without(recorded(tmp_path, TORCH, JAX, CLOSE, blocks=11), JAX.key, after=8)
    late = analyse(Dataset([run]))
    for cell in (TORCH, CLOSE):
        without(run, cell.key, after=8)
    early = analyse(Dataset([run]))
    then, now = (
        next(one.comparison for one in told.cells if one.key == JAX.key) for told in (early, late)
    )
    assert then is not None
    assert now is not None
    assert (now.answer, now.ratio, now.interval) == (then.answer, then.ratio, then.interval)
    assert now.why == f"{then.why}; answered after 8 blocks, when its trials ended"


def test_the_page_says_when_a_cell_left_and_asks_for_no_more_of_its_trials(tmp_path: Path) -> None:
    run = without(recorded(tmp_path, TORCH, JAX, CLOSE, blocks=12), JAX.key, after=8)
    results = analyse(Dataset([run]))
    assert "answered before: " in str(results.runs[0].repetition)
    assert " after 8 (faster)" in str(results.runs[0].repetition)
    assert results.runs[0].repetition is not None
    assert results.runs[0].repetition.left[JAX.key] == 8
    # the plan goes to 12 blocks of three cells; four of jax are not asked for
    assert not any("is not complete" in one for one in results.warnings)


def test_what_later_blocks_say_of_a_cell_that_left_changes_no_decision(tmp_path: Path) -> None:
    whole = recorded(tmp_path / "a", TORCH, JAX, CLOSE, blocks=12)
    parted = without(recorded(tmp_path / "b", TORCH, JAX, CLOSE, blocks=12), JAX.key, after=8)
    told = []
    for folder in (whole, parted):
        dataset = Dataset([folder])
        (run,) = dataset.runs
        cells = estimate_cells(dataset)[run.info.name]
        told.append(answered.judge(run, dataset.trials, cells, 8))
    assert told[0] == told[1]


def test_a_budget_pays_for_the_blocks_of_those_that_stay(tmp_path: Path) -> None:
    run = recorded(tmp_path, TORCH, JAX, CLOSE, blocks=8)
    dataset = Dataset([run])
    (record,) = dataset.runs
    cells = estimate_cells(dataset)[record.info.name]
    spent_s = sum(one.outcome.at_work_s for one in dataset.trials)
    each_s = spent_s / 8
    for budget_s, stops in ((spent_s + 0.8 * each_s, False), (spent_s + 0.5 * each_s, True)):
        measure = {**record.info.measure, "budget_s": budget_s}
        limited = replace(record, info=replace(record.info, measure=measure))
        assert answered.judge(limited, dataset.trials, cells, 8).stop is stops
