"""These tests hold that cells that are answered leave a session, on a model of a machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.analyse import analyse
from harness.errors import RunError
from harness.plan.plan import Plan, make_plan
from harness.platform.platform import load_platform
from harness.run.further_blocks import add_blocks
from harness.run.session import resume, start
from harness.run.trials.simulated_trial import Simulation
from harness.run.trust import NOTHING
from harness.store.dataset import Dataset
from harness.store.layout import RunPaths, TrialName
from harness.store.outcome import Ended, Outcome, write_outcome
from harness.store.run_directory.due import read_due
from harness.study.study import load_study
from tests.run.test_session import Listener

STUDY = """title = "Two questions"
[matrix]
workload = ["alexnet", "resnet50"]
framework = "torch"
strategy = "ddp"
nodes = [1, 4]
[measure]
stop = "answered"
trials_at_most = 6
warmup = "3 steps"
until = "5 steps"
reference = { nodes = 1 }
"""
DONE = (("alexnet", 4), ("resnet50", 6))


class Opened(Simulation):
    """Leaves ResNet's comparison without an answer: after its first trial, one cell is late."""

    def run_trial(self, one, name, **more) -> Outcome:
        """Play a trial."""
        outcome = super().run_trial(one, name, **more)
        is_late = one.cell.workload == "resnet50" and one.cell.scale.nodes == 4
        if is_late and name != TrialName(1):
            outcome = replace(outcome, ended=Ended.TIMED_OUT)
            write_outcome(outcome, self._bench.paths.trial(one.cell.key, name))
        return outcome


def made(folder: Path, text: str = STUDY) -> Plan:
    file = folder / "study.toml"
    file.write_text(text)
    return make_plan(load_study(file), load_platform("simulated-cluster"))


def blocks(plan: Plan, listener: Listener) -> dict[str, int]:
    """Give the last block that each cell of a session had."""
    last = dict.fromkeys((cell.key for cell in plan.cells), 0)
    for _, one in listener.ended:
        name = TrialName.parse(one.trial)
        assert name is not None
        last[one.cell_key] = max(last[one.cell_key], name.block)
    return last


def test_cells_that_are_answered_leave_and_added_blocks_are_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.run.trials.simulated_trial.Simulation", Opened)
    plan, root, listener = made(tmp_path), tmp_path / "run", Listener()
    result = start(plan, root=root, study_text=STUDY, observer=listener)
    expected = {cell.key: dict(DONE)[cell.workload] for cell in plan.cells}
    assert blocks(plan, listener) == expected
    assert (result.total, result.done) == (20, 20)
    assert read_due(RunPaths(root)).count().total == 20
    again = Listener()
    assert resume(root, observer=again).total == 20
    assert again.ended == []
    add_blocks(root, 1, trust=NOTHING)
    resume(root, observer=again)
    assert {one.cell_key for _, one in again.ended} == {
        cell.key for cell in plan.cells if cell.workload == "resnet50"
    }
    told = analyse(Dataset([root], origins=("simulated",)))
    assert not any("not complete" in one for one in told.warnings)
    said = str(told.runs[0].repetition)
    assert "answered before: " in said
    assert "after 4 (" in said


def test_a_session_that_was_killed_between_two_looks_lets_the_same_cells_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.run.trials.simulated_trial.Simulation", Opened)
    plan, root = made(tmp_path), tmp_path / "run"
    start(plan, root=root, study_text=STUDY, observer=Listener())
    paths = RunPaths(root)
    open_keys = {cell.key for cell in plan.cells if cell.workload == "resnet50"}
    for key in open_keys:  # as if it had been killed in block 5, before anything of it was there
        for block in (5, 6):
            paths.trial(key, TrialName(block)).outcome.unlink()
    log = [line for line in paths.log.read_text().splitlines() if '"left"' not in line]
    paths.log.write_text("".join(f"{line}\n" for line in log))
    again = Listener()
    result = resume(root, observer=again)
    assert {one.cell_key for _, one in again.ended} == open_keys
    assert result.total == 20


def test_no_blocks_are_added_where_everything_is_answered(tmp_path: Path) -> None:
    text = STUDY.replace('["alexnet", "resnet50"]', '"alexnet"')
    start(made(tmp_path, text), root=tmp_path / "run", study_text=text, observer=Listener())
    with pytest.raises(RunError, match="every comparison of this run is answered"):
        add_blocks(tmp_path / "run", 1, trust=NOTHING)
