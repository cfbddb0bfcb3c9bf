"""What a session makes of the examination of what was timed."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.gate.proof.judging import Untrained
from harness.gate.proof.proofs import Asked
from harness.plan.plan import Plan, make_plan
from harness.platform.platform import load_platform
from harness.run import worklist
from harness.run.session import start
from harness.store.layout import RunPaths, TrialName, TrialPaths
from harness.store.outcome import Ended, Outcome, read_outcome
from harness.study.study import load_study

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

    def judge(self, cell: object, asked: Asked, made: Path, trial_s: float) -> str:
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
    monkeypatch.setattr(worklist, "Proofs", lambda _seed: proofs)
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
