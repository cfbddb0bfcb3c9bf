"""These tests turn recorded runs, whose truth is known, into results."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.analyse import analyse
from harness.analysis.results import Results
from harness.store.dataset import Dataset
from harness.store.layout import RunPaths, TrialName, TrialPaths
from harness.verdicts.results import CellResult
from tests.outcomes import seal, seal_all
from tests.runs import Behaviour, RecordedCell, Recording, write_run

QUIET = Behaviour(step_s=0.02, trial_noise=0.002, window_noise=0.004)
TORCH = RecordedCell(behaviour=QUIET)
JAX = RecordedCell(framework="jax", behaviour=replace(QUIET, step_s=0.025))
TWIN = RecordedCell(framework="keras", behaviour=QUIET)


def results(folder: Path, *cells: RecordedCell, **told: object) -> Results:
    recording = Recording(**{"block_noise": 0.02, **told})  # type: ignore[arg-type]
    return analyse(Dataset([write_run(folder, cells, recording)]))


def named(told: Results, framework: str) -> CellResult:
    return next(cell for cell in told.cells if cell.framework == framework)


def test_cells_come_fastest_first(tmp_path: Path) -> None:
    told = results(tmp_path, JAX, TORCH)
    assert [cell.framework for cell in told.cells] == ["torch", "jax"]


def test_the_rate_is_work_per_second_with_its_interval(tmp_path: Path) -> None:
    rate = named(results(tmp_path, TORCH), "torch").rate
    assert rate is not None
    assert rate.value == pytest.approx(16 / 0.02, rel=0.05)
    assert (rate.unit, rate.n) == ("images/s", 6)
    assert rate.interval is not None
    assert rate.interval.level == 0.96875
    assert rate.interval.meaning == "smallest and largest of 6 trials"


def test_cells_are_compared_within_blocks(tmp_path: Path) -> None:
    # blocks differ by 10 %, far more than the cells: only pairing can see the difference
    told = results(tmp_path, TORCH, JAX, TWIN, block_noise=0.1)
    jax, twin = named(told, "jax").comparison, named(told, "keras").comparison
    assert jax is not None
    assert twin is not None
    assert (jax.answer, twin.answer) == ("slower", "same")
    assert jax.ratio == pytest.approx(0.8, rel=0.02)
    assert jax.interval is not None
    assert "all 2 compared cells together" in jax.interval.meaning
    reference = named(told, "torch").comparison
    assert reference is not None
    assert reference.answer == "reference"


def test_without_a_declared_reference_a_pilot_block_chooses_one(tmp_path: Path) -> None:
    told = results(tmp_path, JAX, TORCH, reference=None, trials=7)
    comparison = named(told, "jax").comparison
    assert comparison is not None
    assert (comparison.answer, comparison.blocks) == ("slower", 6)
    assert comparison.reference_key == TORCH.key
    assert any("No reference was declared" in warning for warning in told.warnings)


def test_a_cell_alone_is_not_told_of_a_pilot_block(tmp_path: Path) -> None:
    told = results(tmp_path, TORCH, reference=None)
    assert not any("pilot" in warning for warning in told.warnings)


def test_many_ranks_add_up(tmp_path: Path) -> None:
    two = replace(TORCH, factors={"ranks_per_node": 2})
    rate = named(results(tmp_path, two), "torch").rate
    assert rate is not None
    assert rate.value == pytest.approx(2 * 16 / 0.02, rel=0.05)


def test_a_warm_up_left_in_the_windows_is_cut_off(tmp_path: Path) -> None:
    slow = replace(TORCH, behaviour=replace(QUIET, slow_windows=15))
    cell = named(results(tmp_path, slow), "torch")
    assert cell.rate is not None
    assert cell.rate.value == pytest.approx(16 / 0.02, rel=0.05)
    (begin,) = {trial.steady_from for trial in cell.trials}
    assert begin in range(14, 21)
    assert "slower" in cell.trials[0].steady_why


def test_all_trials_of_a_cell_leave_out_as_much(tmp_path: Path) -> None:
    cut = {block: replace(QUIET, slow_windows=8 + 4 * block) for block in (1, 2, 3, 4)}
    trials = named(results(tmp_path, replace(TORCH, behaviours=cut)), "torch").trials
    assert len({trial.steady_from for trial in trials}) == 1
    assert "all 6 trials of the cell together" in trials[0].steady_why


def test_a_slow_beginning_of_one_trial_alone_stays_in_it_and_marks_it(tmp_path: Path) -> None:
    met = {3: replace(QUIET, slow_windows=40)}
    trials = named(results(tmp_path, replace(TORCH, behaviours=met)), "torch").trials
    assert {trial.steady_from for trial in trials} == {0}
    assert {trial.block for trial in trials if trial.verdict != "valid"} == {3}


def test_the_beginning_can_be_overridden(tmp_path: Path) -> None:
    run = write_run(tmp_path, [TORCH])
    told = analyse(Dataset([run]), steady_from=20)
    assert {trial.steady_from for trial in told.cells[0].trials} == {20}


def test_percentiles_say_how_many_steps_a_window_has(tmp_path: Path) -> None:
    five = replace(TORCH, behaviour=replace(QUIET, steps_per_window=5))
    trial = named(results(tmp_path, five), "torch").trials[0]
    assert trial.steps_per_window == 5
    assert trial.p50_s == pytest.approx(0.02, rel=0.1)


def test_failed_trials_are_shown_and_not_counted(tmp_path: Path) -> None:
    broken = replace(TORCH, outcomes={2: "out-of-memory"})
    told = results(tmp_path, broken, JAX)
    cell = named(told, "torch")
    failed = next(trial for trial in cell.trials if trial.block == 2)
    assert (failed.counted, failed.rate, failed.verdict) == (False, None, None)
    assert failed.reason
    assert cell.rate is not None
    assert cell.rate.n == 5
    assert any("1 of 12 trials ended out-of-memory" in warning for warning in told.warnings)
    assert any("fewer than 6 common blocks" in warning for warning in told.warnings)


def renamed(trial: Path) -> None:
    """Have a trial's outcome say where it lies now."""
    outcome = TrialPaths(trial).outcome
    said = json.loads(outcome.read_text(encoding="utf-8"))
    outcome.write_text(json.dumps({**said, "trial": trial.name}), encoding="utf-8")
    seal(TrialPaths(trial))


def test_a_second_attempt_stands_for_a_failed_first(tmp_path: Path) -> None:
    run = write_run(tmp_path, [replace(TORCH, outcomes={2: "failed"})])
    good = RunPaths(run).trial(TORCH.key, TrialName(3)).root
    again = RunPaths(run).trial(TORCH.key, TrialName(2, 2)).root
    again.mkdir()
    for file in good.iterdir():
        (again / file.name).write_bytes(file.read_bytes())
    renamed(again)
    cell = analyse(Dataset([run])).cells[0]
    counted = [(trial.block, trial.attempt) for trial in cell.trials if trial.counted]
    assert counted == [(1, 1), (2, 2), (3, 1), (4, 1), (5, 1), (6, 1)]


def test_a_cell_without_a_figure_comes_last_and_unranked(tmp_path: Path) -> None:
    broken = replace(TORCH, outcomes=dict.fromkeys(range(1, 7), "unsupported"))
    told = results(tmp_path, JAX, broken)
    assert told.cells[-1].framework == "torch"
    assert told.cells[-1].rate is None
    assert told.cells[-1].comparison is None


def test_an_epoch_takes_the_data_set_over_the_rate(tmp_path: Path) -> None:
    cell = named(results(tmp_path, TORCH), "torch")
    assert cell.epoch_s is not None
    assert cell.rate is not None
    assert cell.epoch_s.value == pytest.approx(50_000 / cell.rate.value, rel=0.01)


def test_first_steps_and_memory_are_kept(tmp_path: Path) -> None:
    trial = named(results(tmp_path, TORCH), "torch").trials[0]
    assert trial.first_step_s == pytest.approx(1.0)
    assert trial.peak_rss_bytes == 512 * 2**20
    assert trial.peak_device_bytes is None


def test_what_varies_is_named(tmp_path: Path) -> None:
    told = results(tmp_path, TORCH, replace(TORCH, factors={"batch": 64}))
    assert told.varied == ("batch",)


def test_results_criticise_themselves(tmp_path: Path) -> None:
    noisy = replace(TORCH, behaviour=replace(QUIET, trial_noise=0.1, window_noise=0.3))
    told = results(tmp_path, noisy, trials=3, marks=("shares a core with the observer",))
    for said in (
        "fewer than 6 counted trials",
        "wider than 10 %",
        "noisy",
        "shares a core with the observer",
        "not checked for computing the same thing",
    ):
        assert any(said in warning for warning in told.warnings), said


def test_of_one_trial_the_reason_is_no_example(tmp_path: Path) -> None:
    noisy = replace(TORCH, behaviour=replace(QUIET, trial_noise=0.1, window_noise=0.3))
    told = {
        trials: [
            one
            for one in results(tmp_path / str(trials), noisy, trials=trials).warnings
            if " noisy (" in one
        ]
        for trials in (1, 3)
    }
    assert ["for example" in one for (one,) in told.values()] == [False, True]


def test_what_trains_no_network_has_nothing_to_check(tmp_path: Path) -> None:
    told = results(tmp_path, replace(TORCH, macs=None))
    assert {cell.gate.state for cell in told.cells} == {"nothing to check"}
    assert not any("not checked" in warning for warning in told.warnings)


def test_an_incomplete_run_says_so(tmp_path: Path) -> None:
    run = write_run(tmp_path, [TORCH])
    RunPaths(run).trial(TORCH.key, TrialName(6)).outcome.unlink()
    assert "The run is not complete: 5 of 6" in " ".join(analyse(Dataset([run])).warnings)


def test_a_changed_environment_is_reported(tmp_path: Path) -> None:
    run = write_run(tmp_path, [TORCH])
    outcome = RunPaths(run).trial(TORCH.key, TrialName(6)).outcome
    outcome.write_text(outcome.read_text().replace('"f1"', '"f2"'))
    seal_all(run)
    assert any("resumed with --mix" in warning for warning in analyse(Dataset([run])).warnings)


def test_the_gate_is_read(tmp_path: Path) -> None:
    told = results(tmp_path, replace(TORCH, gate="equivalent"))
    assert told.cells[0].gate.state == "equivalent"


def test_a_cell_that_computes_something_else_is_not_compared(tmp_path: Path) -> None:
    told = results(tmp_path, TORCH, TWIN, replace(JAX, gate="differs"))
    assert named(told, "jax").comparison is None
    twin = named(told, "keras").comparison
    assert twin is not None
    assert twin.interval is not None
    assert "exact" in twin.interval.meaning


def test_a_clean_run_has_nothing_to_criticise(tmp_path: Path) -> None:
    told = results(tmp_path, replace(TORCH, gate="equivalent"), replace(JAX, gate="equivalent"))
    assert told.warnings == ()


def test_the_pilot_block_chooses_the_reference_and_is_discarded(tmp_path: Path) -> None:
    run = write_run(tmp_path, [JAX, TORCH], Recording(reference=None, trials=7))
    for cell in (JAX, TORCH):
        pilot = RunPaths(run).trial(cell.key, TrialName(0)).root
        RunPaths(run).trial(cell.key, TrialName(7)).root.rename(pilot)
        renamed(pilot)
    cell = named(analyse(Dataset([run])), "jax")
    assert cell.comparison is not None
    assert (cell.comparison.reference_key, cell.comparison.blocks) == (TORCH.key, 6)
    assert cell.rate is not None
    assert cell.rate.n == 6
    assert [trial.counted for trial in cell.trials] == [False, *[True] * 6]


def test_a_cancelled_attempt_is_no_trial(tmp_path: Path) -> None:
    cancelled = replace(TORCH, outcomes=dict.fromkeys(range(2, 7), "cancelled"))
    told = results(tmp_path, cancelled)
    assert [trial.block for trial in told.cells[0].trials] == [1]
    counts = "1 of 6 planned trials done, 5 left; 5 of 6 attempts rejected, lost or cancelled"
    assert f"The run is not complete: {counts}." in told.warnings
    assert not any("ended cancelled" in warning for warning in told.warnings)


def test_repeated_looks_share_the_error(tmp_path: Path) -> None:
    measure = {"trials": 6, "until_interval": 0.5, "warmup": "5 steps", "until": "60 steps"}
    run = write_run(tmp_path, [TORCH, JAX], Recording(trials=12, measure=measure))
    plan = json.loads(RunPaths(run).plan.read_text())
    RunPaths(run).plan.write_text(json.dumps({**plan, "looks": [8, 12, 18, 20]}))
    told = analyse(Dataset([run]))
    jax = named(told, "jax")
    assert jax.rate is not None
    assert jax.rate.interval is not None
    assert jax.rate.interval.level >= 1 - 0.05 / 4
    assert jax.comparison is not None
    assert jax.comparison.interval is not None
    assert jax.comparison.interval.level == pytest.approx(1 - 0.05 / 4)
    assert "the error shared by 4 looks" in jax.comparison.interval.meaning
    assert told.runs[0].repetition is not None
    assert "every interval is within" in str(told.runs[0].repetition)
