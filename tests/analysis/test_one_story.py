"""These tests hold that a cell's place, rate, ratio and interval never contradict each other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.analyse import analyse
from harness.analysis.results import Results
from harness.store.dataset import Dataset
from harness.verdicts.results import CellResult
from tests.runs import Behaviour, RecordedCell, Recording, write_run

QUIET = Behaviour(trial_noise=0.0, window_noise=0.001)
FAST, SLOW = replace(QUIET, step_s=0.0198), replace(QUIET, step_s=0.03)
STEADY = RecordedCell(framework="torch", behaviour=QUIET)
TWO_SPEEDS = RecordedCell(
    framework="jax", behaviour=FAST, behaviours=dict.fromkeys((2, 4, 6), SLOW)
)
"""Its median trial is faster than the other's, and its mean is not."""


def told(folder: Path, *cells: RecordedCell, trials: int = 7) -> Results:
    run = write_run(folder, cells, Recording(trials=trials, block_noise=0.02))
    return analyse(Dataset([run]))


def assert_one_story(results: Results) -> None:
    (ranking,) = results.rankings
    reference = ranking.reference
    assert reference is not None
    assert reference.rate is not None
    for cell in ranking.cells:
        assert cell.rate is not None
        assert cell.rate.interval is not None
        assert cell.comparison is not None
        assert cell.comparison.ratio == pytest.approx(cell.rate.value / reference.rate.value)
        assert cell.rate.interval.low <= cell.rate.value <= cell.rate.interval.high
        if cell.comparison.interval is not None:
            interval = cell.comparison.interval
            assert interval.low <= cell.comparison.ratio <= interval.high
    assert list(ranking.cells) == sorted(ranking.cells, key=_ratio, reverse=True)


def _ratio(cell: CellResult) -> float:
    assert cell.comparison is not None
    return cell.comparison.ratio or 0.0


def test_a_cell_of_two_speeds_is_ranked_as_it_compares(tmp_path: Path) -> None:
    results = told(tmp_path, STEADY, TWO_SPEEDS)
    assert_one_story(results)
    assert results.rankings[0].cells[0].framework == "torch"


def test_lost_trials_leave_rates_and_ratios_in_one_order(tmp_path: Path) -> None:
    quick = replace(QUIET, step_s=0.02 / 1.001)
    lost = {1: "failed", 2: "failed", 3: "failed"}
    cells = (STEADY, RecordedCell(framework="jax", behaviour=quick, outcomes=lost))
    for seed in range(4):
        run = write_run(
            tmp_path, cells, Recording(name=f"run-{seed}", seed=seed, trials=9, block_noise=0.1)
        )
        assert_one_story(analyse(Dataset([run])))


def test_many_trials_of_two_speeds_have_their_rate_within_its_interval(tmp_path: Path) -> None:
    seldom = replace(TWO_SPEEDS, behaviours=dict.fromkeys((2, 9), replace(SLOW, step_s=0.2)))
    assert_one_story(told(tmp_path, STEADY, seldom, trials=12))


def test_percentiles_of_a_cell_are_of_one_size_of_window(tmp_path: Path) -> None:
    mixed = replace(STEADY, behaviours={3: replace(QUIET, steps_per_window=4)})
    (cell,) = told(tmp_path, mixed).cells
    assert [trial.p50_s is None for trial in cell.trials] == [n == 3 for n in range(1, 8)]


def test_the_last_percentile_is_told_only_of_enough_windows(tmp_path: Path) -> None:
    (few,) = told(tmp_path / "few", STEADY).cells
    (many,) = told(tmp_path / "many", replace(STEADY, behaviour=replace(QUIET, windows=120))).cells
    assert few.trials[0].p95_s is not None
    assert few.trials[0].p99_s is None
    assert many.trials[0].p99_s is not None
