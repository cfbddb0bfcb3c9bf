"""These tests hold when a study ends that goes on until its comparisons are answered."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.analyse import analyse, estimate_cells
from harness.analysis.blocks import answered
from harness.stats.repetition.repeat import Decision
from harness.store.dataset import Dataset
from harness.store.layout import RunPaths
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
