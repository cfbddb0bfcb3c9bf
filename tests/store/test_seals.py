"""What is changed by hand after a trial ended is not believed, named, and run again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.analysis.read import read_results
from harness.errors import DamagedFile
from harness.store.layout import RunPaths, TrialName, TrialPaths
from harness.store.outcome import read_complete
from harness.store.run_directory.trial_folders import set_interrupted_aside
from tests.outcomes import seal
from tests.runs import RecordedCell, Recording, write_run

CELL = RecordedCell()


@pytest.fixture
def run(tmp_path: Path) -> RunPaths:
    return RunPaths(write_run(tmp_path, [CELL], Recording(trials=3)))


@pytest.fixture
def trial(run: RunPaths) -> TrialPaths:
    return run.trial(CELL.key, TrialName(2))


def mend_outcome(trial: TrialPaths) -> None:
    raw = json.loads(trial.outcome.read_bytes())
    trial.outcome.write_text(json.dumps({**raw, "proof": "3 updates as timed equal float64's"}))


def take_digest_away(trial: TrialPaths) -> None:
    raw = json.loads(trial.outcome.read_bytes())
    del raw["digest"]
    trial.outcome.write_text(json.dumps(raw))


def take_window_out(trial: TrialPaths) -> None:
    lines = trial.events(0).read_text().splitlines(keepends=True)
    last = max(place for place, line in enumerate(lines) if '"window"' in line)
    trial.events(0).write_text("".join(lines[:last] + lines[last + 1 :]))


def ask_another_batch(trial: TrialPaths) -> None:
    raw = json.loads(trial.job.read_bytes())
    trial.job.write_text(json.dumps({**raw, "factors": {**raw["factors"], "batch": 17}}))


def remove_events(trial: TrialPaths) -> None:
    trial.events(0).unlink()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (mend_outcome, "outcome.json"),
        (take_digest_away, "outcome.json"),
        (take_window_out, "events.0.jsonl"),
        (remove_events, "events.0.jsonl"),
        (ask_another_batch, "job.json"),
    ],
)
def test_a_trial_that_was_changed_is_named_left_out_and_due_again(
    run: RunPaths, trial: TrialPaths, change: Callable[[TrialPaths], None], named: str
) -> None:
    before = read_results([run.root])
    change(trial)
    with pytest.raises(DamagedFile, match=rf"{named} was changed after its trial ended"):
        read_complete(trial)
    after = read_results([run.root])
    assert [len(one.cells[0].trials) for one in (before, after)] == [3, 2]
    assert any(named in one for one in after.warnings)
    (aside,) = set_interrupted_aside(run)
    assert aside.name.startswith(f"{CELL.key}.trial-2.")


def test_what_is_sealed_anew_is_believed(run: RunPaths, trial: TrialPaths) -> None:
    take_window_out(trial)
    seal(trial)
    assert read_complete(trial).is_ok
    assert set_interrupted_aside(run) == []
