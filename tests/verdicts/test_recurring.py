"""Hold a stall that is a program's own apart from one that somebody else caused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from harness.analysis.read import read_results
from harness.store.layout import RunPaths, TrialName
from harness.store.samples import samples_format
from harness.verdicts.ended_trial import doubt
from harness.verdicts.results import CellResult
from tests.runs import Behaviour, RecordedCell, write_run

QUIET = Behaviour(trial_noise=0.002, window_noise=0.004)
BLOCKS = range(1, 7)


def recorded(folder: Path, stalls: Mapping[int, int]) -> tuple[RunPaths, str]:
    """Record six observed trials of one cell; some blocks' stand still at a window."""
    still = {block: replace(QUIET, stall_at=at) for block, at in stalls.items()}
    cell = RecordedCell(behaviour=QUIET, behaviours=still)
    paths = RunPaths(write_run(folder, [cell]))
    for block in BLOCKS:
        trial = paths.trial(cell.key, TrialName(block))
        trial.samples("node0").write_bytes(samples_format.header(node="node0"))
    return paths, cell.key


def judged(paths: RunPaths) -> CellResult:
    (cell,) = read_results([paths.root]).cells
    return cell


def test_a_stall_at_the_same_window_of_every_trial_leaves_the_cell_its_number(
    tmp_path: Path,
) -> None:
    paths, key = recorded(tmp_path, {block: 40 + block % 2 for block in BLOCKS})
    cell = judged(paths)
    assert cell.rate is not None
    assert all(trial.counted for trial in cell.trials)
    assert {trial.verdict for trial in cell.trials} == {"stalled"}
    assert "the program itself does" in cell.trials[0].evidence[-1]
    assert doubt(paths.trial(key, TrialName(3))) is None


def test_a_stall_of_one_trial_rejects_that_trial(tmp_path: Path) -> None:
    paths, key = recorded(tmp_path, {2: 40})
    assert {trial.block for trial in judged(paths).trials if not trial.counted} == {2}
    assert (doubt(paths.trial(key, TrialName(2))) or "").startswith("stalled: no step ended")


def test_stalls_at_different_windows_are_somebody_elses(tmp_path: Path) -> None:
    paths, _ = recorded(tmp_path, {block: 8 * block for block in BLOCKS})
    assert not any(trial.counted for trial in judged(paths).trials)
