"""What a session makes of the examination of what was timed."""

from __future__ import annotations

import json
import multiprocessing
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.gate.proof import judging, request
from harness.gate.proof.proofs import Asked, Proofs
from harness.gate.proof.untrained import Untrained
from harness.gate.tensors import folders
from harness.plan import duration
from harness.plan.cell import Cell
from harness.plan.duration import estimate, start_s
from harness.plan.plan import Plan, make_plan
from harness.platform.platform import load_platform
from harness.run import worklist
from harness.run.session import start
from harness.store.layout import RunPaths, TrialName, TrialPaths
from harness.store.outcome import Ended, Outcome, read_outcome
from harness.study.study import load_study
from harness.worker.gate import tensors
from harness.worker.gate.tensors import Writer
from tests.needs import framework
from workloads.alexnet import WORKLOAD

STUDY = """title = "Null"
[matrix]
workload = "tinycnn"
framework = "null"
[measure]
trials = 1
reruns = 0
warmup = "3 steps"
until = "20 ms"
tolerate = ["contended", "throttled", "stalled"]
"""


class Silent:
    """A listener that needs to hear nothing."""

    def progressed(self, progress: object) -> None:
        pass

    def trial_ended(self, progress: object, outcome: Outcome) -> None:
        pass

    def doing(self, text: str) -> None:
        pass

    def noted(self, text: str) -> None:
        pass


class Examined:
    """Stands in for the proofs of a session: each finds the same."""

    def __init__(self, given: Path, why_not: str = "", fault: str = "") -> None:
        self.given, self.why_not, self.fault = given, why_not, fault

    def asked(self, cell: object, block: int) -> Asked:
        return Asked(self.given, self.why_not)

    def judge(self, cell: object, asked: Asked, made: TrialPaths, trial_s: float) -> str:
        if self.fault:
            raise Untrained(self.fault)
        return "3 updates as timed"

    def release(self) -> None:
        pass


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (tmp_path / "study.toml").write_text(STUDY)
    return make_plan(load_study(tmp_path / "study.toml"), load_platform())


def outcome(plan: Plan, root: Path, proofs: Examined, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    monkeypatch.setattr(worklist, "Proofs", lambda *_: proofs)
    start(plan, root=root, study_text=STUDY, observer=Silent())
    return read_outcome(trial(plan, root))


def trial(plan: Plan, root: Path) -> TrialPaths:
    return RunPaths(root).trial(plan.cells[0].key, TrialName(1))


def test_a_trial_whose_step_does_not_train_fails_with_a_sentence(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = outcome(
        plan, tmp_path / "run", Examined(tmp_path, fault="update 1 changes nothing"), monkeypatch
    )
    assert found.ended is Ended.FAILED
    assert found.reason == (
        "the step that was timed does not train the network: update 1 changes nothing"
    )
    assert not trial(plan, tmp_path / "run").proved.exists()


def test_a_trial_keeps_what_its_examination_found(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = outcome(plan, tmp_path / "run", Examined(tmp_path), monkeypatch)
    assert (found.ended, found.proof) == (Ended.OK, "3 updates as timed")


def test_a_trial_that_is_not_examined_says_why(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = outcome(plan, tmp_path / "run", Examined(tmp_path, why_not="too large"), monkeypatch)
    assert found.proof == "not examined: too large"


def planted(trial: TrialPaths, outside: Path, how: str) -> None:
    """Leave in a trial's folder what the rank should not have made."""
    index = {"version": tensors.VERSION, "about": {"seconds": 1.0}, "tensors": {}}
    entry = {"file": "0.raw", "shape": [4], "dtype": "float32"}
    if how == "a folder that is a link":
        trial.proved.symlink_to(outside, target_is_directory=True)
        return
    trial.proved.mkdir()
    if how == "a tensor elsewhere":
        entry["file"] = str(outside / "secret")
    if how == "a tensor above":
        entry["file"] = "../../0.raw"
    if how == "a tensor that is a link":
        (trial.proved / "0.raw").symlink_to(outside / "secret")
    if how == "a tensor that is a pipe":
        os.mkfifo(trial.proved / "0.raw")
    if how == "a tensor that is too short":
        (trial.proved / "0.raw").write_bytes(b"1")
    if how == "a type of its own":
        entry["dtype"] = "object"
    if how == "no seconds":
        index["about"] = {}
    if how == "an index of another form":
        index["tensors"] = [entry]
    else:
        index["tensors"] = {f"after/1/{name}": entry for name in ("a", "step")}
    (trial.proved / "index.json").write_text(json.dumps(index))


@pytest.mark.parametrize(
    "how",
    [
        *("a folder that is a link", "a tensor elsewhere", "a tensor above"),
        *("a tensor that is a link", "a tensor that is a pipe", "a tensor that is too short"),
        *("a tensor that is not there", "a type of its own", "no seconds"),
        "an index of another form",
    ],
)
def test_what_a_trial_gives_to_be_examined_is_opened_as_any_file_of_a_run(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(bytes(16))
    (outside / "index.json").write_text("{}")
    given, trial = tmp_path / "given", TrialPaths(tmp_path / "run" / "trial-1", tmp_path / "run")
    trial.root.mkdir(parents=True)
    planted(trial, outside, how)
    writer = tensors.Writer(str(given))
    writer.close({})

    def read(*given: Any, **_: Any) -> None:
        folders.array(given[3].tensors["after/1/a"])

    monkeypatch.setattr(judging, "judge", read)
    cell = replace(plan.cells[0], factors={**plan.cells[0].factors, "precision": "fp32"})
    with pytest.raises(Untrained, match="cannot be read"):
        Proofs(1).judge(cell, Asked(given, ""), trial, 1.0)
    assert (outside / "secret").read_bytes() == bytes(16)


def made_at_once(_workload: object, _batch: int, _seed: int, place: Path, **_how: object) -> None:
    is_apart = multiprocessing.parent_process() is not None
    Writer(str(place)).close({"batches": [], "made in a process of its own": is_apart})


@pytest.fixture
def alexnet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cell:
    """Plan a network whose start takes more than a moment; here it is as good as made."""
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(request, "write_given", made_at_once)
    return alexnets(tmp_path).cells[0]


def alexnets(folder: Path) -> Plan:
    text = STUDY.replace("tinycnn", "alexnet").replace('"null"', '["torch", "jax"]')
    (folder / "study.toml").write_text(text)
    return make_plan(load_study(folder / "study.toml"), load_platform())


def test_a_plan_counts_once_for_all_frameworks_what_its_trials_start_from(tmp_path: Path) -> None:
    plan = alexnets(tmp_path)
    first = estimate(plan)
    starts_s = start_s(WORKLOAD, plan.cells[0].scale.batch_per_rank)
    assert 5 < starts_s < 60
    trials_s = sum(first.trial_s.values())
    assert trials_s + starts_s < first.total_s  # and the untimed jobs
    later = estimate(plan, {plan.cells[0].key: [1.0]})  # its first trial has made it
    assert later.total_s < first.total_s - starts_s


def test_what_a_start_takes_is_said_once_before_it_is_computed(alexnet: Cell) -> None:
    said: list[str] = []
    for _ in range(2):
        proofs = Proofs(1, said.append)
        asked = proofs.asked(alexnet, 1)
        assert asked is not None
        # Elsewhere, so that what it takes of memory is free again for the trials.
        assert folders.open_folder(asked.given).about["made in a process of its own"]
        proofs.release()
    (words,) = said
    assert words.startswith("Computing what trials of alexnet at batch ")
    assert words.endswith(" s of a free core.")


def test_a_start_that_was_changed_by_hand_is_not_believed(alexnet: Cell) -> None:
    said: list[str] = []
    first = Proofs(1, said.append)
    asked = first.asked(alexnet, 1)
    assert asked is not None
    first.release()
    index = asked.given / "index.json"
    whole = index.read_bytes()
    index.write_bytes(whole.replace(b'"version": 2', b'"version": 1'))
    again = Proofs(1, said.append)
    assert again.asked(alexnet, 1) is not None
    again.release()
    assert index.read_bytes() == whole
    assert any("was changed by hand and is not believed" in words for words in said)


@pytest.mark.usefixtures("alexnet")
def test_a_start_is_made_anew_where_another_number_of_pictures_fills_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = STUDY.replace('"null"', '"torch"')
    (tmp_path / "study.toml").write_text(text)
    (tinycnn,) = make_plan(load_study(tmp_path / "study.toml"), load_platform()).cells
    given = []
    for most in (duration.MOST_START_MACS, duration.MOST_START_MACS, 1):
        monkeypatch.setattr(duration, "MOST_START_MACS", most)
        proofs = Proofs(1)
        asked = proofs.asked(tinycnn, 1)
        assert asked is not None
        given.append(asked.given)
        proofs.release()
    kept, again, fewer = given
    assert kept == again
    assert fewer != kept


def test_a_re_run_of_an_examined_block_is_not_examined_again(
    alexnet: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "judge", lambda *_, **__: judging.Proved(3, 1e-6, True))
    trial = RunPaths(tmp_path / "run").trial(alexnet.key, TrialName(1))
    Writer(str(trial.proved)).close({"seconds": 1.0})
    proofs = Proofs(1)
    asked = proofs.asked(alexnet, 1)
    assert asked is not None
    assert asked.why_not == ""
    assert proofs.judge(alexnet, asked, trial, 60.0).startswith("3 updates as timed")
    for block, why_not in ((1, "the first trial of its block was"), (2, "")):
        again = proofs.asked(alexnet, block)
        assert again is not None
        assert again.why_not == why_not
    proofs.release()


def two_ranks(folder: Path, text: str) -> Plan:
    (folder / "study.toml").write_text(text)
    platform = load_platform()
    binding = platform.binding.model_copy(update={"oversubscribe": True})
    platform = platform.model_copy(update={"binding": binding})
    return make_plan(load_study(folder / "study.toml"), platform)


TWO_RANKS = STUDY.replace('"null"', '"torch"\nstrategy = "ddp"\nranks_per_node = 2\nbatch = 4')


@pytest.mark.framework
def test_a_run_says_of_its_ranks_what_was_proved(tmp_path: Path) -> None:
    framework("torch")
    plan = two_ranks(tmp_path, TWO_RANKS)
    start(plan, root=tmp_path / "run", study_text=TWO_RANKS, observer=Silent())
    found = read_outcome(trial(plan, tmp_path / "run"))
    assert found.is_ok, found.reason
    assert found.proof.startswith("3 updates as timed, of 2 ranks, equal float64's within ")
    assert not trial(plan, tmp_path / "run").proved.exists()


def test_ranks_that_exchange_nothing_are_not_examined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path / "home"))
    text = TWO_RANKS.replace("batch = 4", "batch = 4\ncommunicate = [true, false]")
    proofs = Proofs(1)
    asked = {
        cell.factors["communicate"]: proofs.asked(cell, 1)
        for cell in two_ranks(tmp_path, text).cells
    }
    assert all(one is not None for one in asked.values())
    found = {told: one.why_not for told, one in asked.items() if one is not None}
    assert found == {True: "", False: "its ranks exchange no gradients"}
    proofs.release()
