"""Hold a run to having its cells examined before they are compared, and only once."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.analysis.analyse import analyse
from harness.cli.verbs.run import conclude
from harness.errors import RunError
from harness.gate.result import Result
from harness.plan.plan import Plan, make_plan
from harness.platform.platform import load_platform
from harness.ranks.payload import Payload
from harness.run.progress import SessionResult
from harness.run.session import resume, start
from harness.store.dataset import Dataset
from harness.store.gate_results import store_result
from harness.store.layout import RunPaths, TrialName
from harness.store.paths import handles
from harness.study.study import load_study
from harness.verdicts.results import CellResult
from tests.run.test_session import Listener
from tests.runs import RecordedCell, write_run

STUDY = """title = "Two cells"
[matrix]
workload = "tinycnn"
framework = "null"
batch = [8, 16]
[measure]
trials = 2
warmup = "3 steps"
until = "20 ms"
tolerate = ["contended", "throttled", "stalled"]
reference = { batch = 16 }
"""
CHANGED = Path("harness/worker/loop.py")


@dataclass
class Gate:
    """Stands in for the gate: the cell with a batch of 16 computes something else."""

    stop: Callable[[], None] = lambda: None
    """What happens after the first cell."""
    asked: list[str] = field(default_factory=list)
    payloads: list[Payload] = field(default_factory=list)
    wrong: Result = field(default_factory=lambda: Result("differs", "fc"))
    """What it says of that cell."""

    def ensure(self, plan: Plan, *, keep, watch, payload) -> dict[str, Result]:
        found = {}
        self.payloads.append(payload)
        for cell in plan.cells:
            watch(cell.label)
            self.asked.append(cell.key)
            is_wrong = cell.factors["batch"] == 16
            found[cell.key] = self.wrong if is_wrong else Result("equivalent", "3e-11")
            keep(cell.key, found[cell.key])
            self.stop()
        return found


class Killed(BaseException):
    """The host dies."""


class Dying(Listener):
    """Kills the host when its first trial has ended."""

    def trial_ended(self, progress, ended) -> None:
        super().trial_ended(progress, ended)
        if ended.trial.startswith("trial"):
            raise Killed


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    return make_plan(load_study(study), load_platform())


def begin(plan: Plan, root: Path, gate: Gate, listener: Listener | None = None):
    listener = listener or Listener()
    return start(plan, root=root, study_text=STUDY, observer=listener, ensure=gate.ensure)


def cells_of(root: Path) -> dict[int, CellResult]:
    return {cell.factors["batch"]: cell for cell in analyse(Dataset([root])).cells}


def change(root: Path, key: str, block: int) -> None:
    """Make a run look as if a cell's code had been another before its last trial."""
    paths = RunPaths(root)
    paths.trial(key, TrialName(block)).outcome.unlink()
    identity = json.loads(paths.run.read_text())
    identity["first"][key] = identity["accepted"][key] = "of-other-code"
    paths.run.write_text(json.dumps(identity))
    for outcome in (paths.cells / key).glob("trial-*/outcome.json"):
        told = json.loads(outcome.read_text())
        outcome.write_text(json.dumps({**told, "fingerprint": "of-other-code"}))
    found = paths.gate / f"{key}.json"
    (result,) = json.loads(found.read_text())["found"].values()
    found.unlink()
    store_result(paths, key, "of-other-code", result)


def test_a_killed_run_greys_the_cell_that_differs_even_where_it_is_the_reference(plan, tmp_path):
    with pytest.raises(Killed):
        begin(plan, tmp_path / "run", Gate(), Dying())
    results = analyse(Dataset([tmp_path / "run"]))
    assert {c.factors["batch"]: c.gate.state for c in results.cells} == {
        8: "equivalent",
        16: "differs",
    }
    (ranking,) = results.rankings
    assert [cell.factors["batch"] for cell in ranking.set_aside] == [16]
    assert all(cell.comparison is None for cell in results.cells)


def test_every_cell_is_examined_before_the_first_trial_from_the_run_s_own_payload(plan, tmp_path):
    class Watching(Listener):
        def progressed(self, progress) -> None:
            if not self.progress:
                self.first = len(gate.asked)
            super().progressed(progress)

    gate, listener = Gate(), Watching()
    begin(plan, tmp_path / "run", gate, listener)
    assert listener.first == len(plan.cells)
    (payload,) = gate.payloads
    assert payload.files[CHANGED.as_posix()] == tmp_path / "run" / "payload" / CHANGED
    assert listener.notes[0].startswith("Gate: 1 equivalent, 1 differs.")


@pytest.mark.parametrize(("stop", "code"), [(KeyboardInterrupt(), 130), (SystemExit(143), 143)])
def test_a_gate_that_is_stopped_ends_the_run_and_resume_examines_the_rest(
    plan, tmp_path, stop, code
):
    def interrupt() -> None:
        raise stop

    result = begin(plan, tmp_path / "run", Gate(interrupt))
    assert (result.interrupted, result.done) == (code, 0)
    first, second = (cell.key for cell in plan.cells)
    assert [path.stem for path in (tmp_path / "run" / "gate").iterdir()] == [first]
    gate = Gate()
    assert resume(tmp_path / "run", observer=Listener(), ensure=gate.ensure).done == 4
    assert gate.asked == [second]


def test_what_was_examined_is_not_examined_again_unless_its_result_is_gone(plan, tmp_path):
    begin(plan, tmp_path / "run", Gate())
    again = Gate()
    resume(tmp_path / "run", observer=Listener(), ensure=again.ensure)
    assert again.asked == []
    key = plan.cells[1].key
    (tmp_path / "run" / "gate" / f"{key}.json").write_text("{")
    resume(tmp_path / "run", observer=Listener(), ensure=again.ensure)
    assert again.asked == [key]
    assert cells_of(tmp_path / "run")[16].gate.state == "differs"


def test_code_that_changed_is_examined_again_and_the_worse_result_holds(plan, tmp_path):
    begin(plan, tmp_path / "run", Gate())
    by_batch = {cell.factors["batch"]: cell.key for cell in plan.cells}
    change(tmp_path / "run", by_batch[16], 2)
    gate = Gate()
    resume(tmp_path / "run", mix=True, observer=Listener(), ensure=gate.ensure)
    assert gate.asked == [by_batch[16]]
    (payload,) = gate.payloads
    assert payload.files[CHANGED.as_posix()] == tmp_path / "run" / "payload.2" / CHANGED
    assert cells_of(tmp_path / "run")[16].gate.state == "differs"


def test_a_cell_mixed_by_a_session_without_the_gate_is_not_called_equivalent(plan, tmp_path):
    begin(plan, tmp_path / "run", Gate())
    by_batch = {cell.factors["batch"]: cell.key for cell in plan.cells}
    change(tmp_path / "run", by_batch[8], 2)
    resume(tmp_path / "run", mix=True, observer=Listener())
    assert cells_of(tmp_path / "run")[8].gate.state == "not checked"
    resume(tmp_path / "run", observer=Listener(), ensure=Gate().ensure)
    assert cells_of(tmp_path / "run")[8].gate.state == "equivalent"


def test_an_allocation_examines_the_cells_that_it_runs(plan, tmp_path):
    first, second = (cell.key for cell in plan.cells)
    with pytest.raises(Killed):
        begin(plan, tmp_path / "run", Gate(lambda: None), Dying())
    for file in (tmp_path / "run" / "gate").iterdir():
        file.unlink()
    gate = Gate()
    resume(tmp_path / "run", only={second}, observer=Listener(), ensure=gate.ensure)
    assert gate.asked == [second]
    assert first != second


def test_a_cell_whose_examination_crashed_is_not_ranked_and_is_examined_again(plan, tmp_path):
    crashed = Result("examination failed", "float64: it crashed", log="the library fell over")
    key = plan.cells[1].key
    begin(plan, tmp_path / "run", Gate(wrong=crashed))
    (ranking,) = analyse(Dataset([tmp_path / "run"])).rankings
    assert [cell.key for cell in ranking.set_aside] == [key]
    assert f"its log: gate/{key}.log" in ranking.set_aside[0].refusal
    assert (tmp_path / "run" / "gate" / f"{key}.log").read_text() == "the library fell over"
    again = Gate(wrong=Result("equivalent", "3e-11"))
    resume(tmp_path / "run", observer=Listener(), ensure=again.ensure)
    assert again.asked == [key]
    assert cells_of(tmp_path / "run")[16].gate.state == "equivalent"


def test_a_result_that_was_changed_by_hand_is_examined_anew_and_that_is_said(plan, tmp_path):
    begin(plan, tmp_path / "run", Gate())
    key = plan.cells[1].key
    file = tmp_path / "run" / "gate" / f"{key}.json"
    file.write_text(file.read_text().replace("differs", "equivalent"))
    assert cells_of(tmp_path / "run")[16].gate.state == "not checked"
    assert "changed by hand" in cells_of(tmp_path / "run")[16].gate.detail
    again, listener = Gate(), Listener()
    resume(tmp_path / "run", observer=listener, ensure=again.ensure)
    assert again.asked == [key]
    assert any(f"gate/{key}.json was changed by hand" in note for note in listener.notes)
    assert cells_of(tmp_path / "run")[16].gate.state == "differs"
    file.write_text(json.dumps({"version": 1, "state": "equivalent", "detail": "trust me"}))
    assert cells_of(tmp_path / "run")[16].gate.state == "not checked"


@pytest.mark.parametrize(
    ("state", "code"),
    [("examination failed", 1), ("differs", 1), ("named difference", 0), ("equivalent", 0)],
)
def test_a_run_with_a_cell_that_failed_its_examination_ends_with_1(tmp_path, state, code):
    cell = RecordedCell()
    paths = RunPaths(write_run(tmp_path, [cell]))
    store_result(paths, cell.key, "f1", {"state": state, "detail": "it crashed"})
    ended = SessionResult(paths.root, 6, 6, 6, failed=0, skipped=0, waiting=0, interrupted=0)
    assert conclude(ended, as_json=True) == code


def test_no_page_is_made_of_another_run_that_took_the_place_of_the_one_that_ran(tmp_path):
    paths = RunPaths(write_run(tmp_path, [RecordedCell()]))
    ran = handles.made(paths.root)
    paths.root.rename(tmp_path / "away")
    write_run(tmp_path, [RecordedCell()])
    counts = {"failed": 0, "skipped": 0, "waiting": 0, "interrupted": 0}
    with pytest.raises(RunError, match="another directory is here now"):
        conclude(SessionResult(paths.root, 6, 6, 6, **counts, made=ran), as_json=True)
    assert not paths.report.exists()
