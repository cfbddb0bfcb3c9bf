"""Run blocks whose trials live at the same time, with the framework that does nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from harness.agent import processes
from harness.plan.plan import Plan, make_plan
from harness.plan.two_sides import Side, two_sided
from harness.platform.platform import load_platform
from harness.run.session import resume, start
from harness.run.turns.block import LEFT_ALONE, TOO_LARGE, Blocks
from harness.store.layout import RunPaths, TrialName, TrialPaths
from harness.store.outcome import Ended, Outcome, read_outcome
from harness.store.run_directory.identity import identity
from harness.study.study import load_study
from tests.run.test_session import Listener

STUDY = """title = "Null by turns"
[matrix]
workload = "tinycnn"
framework = "null"
batch = [1, 2, 4]
[measure]
trials = 2
reruns = 1
warmup = "3 steps"
until = "35 ms"
turns = true
turn = "5 ms"
tolerate = ["contended", "throttled", "stalled"]
reference = { batch = 2 }
"""


def planned(tmp_path: Path, text: str = STUDY) -> Plan:
    study = tmp_path / "study.toml"
    study.write_text(text)
    return make_plan(load_study(study), load_platform())


def begin(plan: Plan, root: Path, listener: Listener) -> RunPaths:
    start(plan, root=root, study_text=STUDY, observer=listener)
    return RunPaths(root)


def events(paths: RunPaths, outcome: Outcome, kind: str) -> list[dict[str, Any]]:
    name = TrialName.parse(outcome.trial)
    assert name is not None
    text = paths.trial(outcome.cell_key, name).events(0).read_text()
    return [one for one in map(json.loads, text.splitlines()) if one["event"] == kind]


def turns(paths: RunPaths, outcome: Outcome) -> list[dict[str, Any]]:
    return events(paths, outcome, "turn")


def nobody_is_left(paths: RunPaths) -> bool:
    return not processes.carriers(processes.mark(f"{identity(paths).id}/", prefix=True))


@pytest.fixture
def listener() -> Listener:
    return Listener()


def test_trials_of_a_block_live_at_the_same_time_and_only_one_works(tmp_path, listener):
    plan = planned(tmp_path)
    paths = begin(plan, tmp_path / "run", listener)
    ended = [one for _, one in listener.ended]
    assert [one.ended for one in ended] == [Ended.OK] * 6
    for block in (1, 2):
        some = [one for one in ended if one.trial == f"trial-{block}"]
        together = {one.cell_key: one.trial for one in some}
        assert [one.turns.together for one in some] == [together] * 3
        spans = [
            (window["start"], window["end"])
            for one in some
            for window in events(paths, one, "window")
        ]
        assert all(before[1] <= after[0] for before, after in pairwise(sorted(spans)))
    assert nobody_is_left(paths)


def test_every_round_has_one_turn_of_each_trial_in_an_order_of_its_own(tmp_path, listener):
    paths = begin(planned(tmp_path), tmp_path / "run", listener)
    taken = sorted(
        (turn["start"], turn["round"], one.cell_key)
        for _, one in listener.ended
        if one.trial == "trial-1"
        for turn in turns(paths, one)
    )
    rounds = [number for _, number, _ in taken]
    assert rounds == [number for number in range(1, 8) for _ in range(3)]
    orders = {tuple(key for _, n, key in taken if n == number) for number in range(1, 8)}
    assert {len(set(order)) for order in orders} == {3}
    assert len(orders) > 1


def test_later_runs_know_what_turns_did_to_a_cell(tmp_path, listener, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    plan = planned(tmp_path)
    begin(plan, tmp_path / "run", listener)
    assert {one.turns.known for _, one in listener.ended} == {()}
    again = Listener()
    begin(plan, tmp_path / "again", again)
    assert {len(one.turns.known) for _, one in again.ended} == {14}


def test_turns_add_up_to_what_the_study_measures(tmp_path, listener):
    text = STUDY.replace('until = "35 ms"', 'until = "1003 steps"')
    paths = begin(planned(tmp_path, text), tmp_path / "run", listener)
    for _, one in listener.ended:
        assert one.turns.rounds == 7
        measured = [w for w in events(paths, one, "window") if w["phase"] == "measure"]
        assert sum(w["steps"] for w in measured) == 1003
        assert {w["turn"] for w in measured} == {turn["number"] for turn in turns(paths, one)}


def test_a_trial_alone_in_its_block_says_why(tmp_path, listener):
    text = STUDY.replace('workload = "tinycnn"', 'workload = ["tinycnn", "nothing"]')
    text = text.replace("batch = [1, 2, 4]", "batch = [1, 2]")
    plan = planned(tmp_path, text.replace("reference = { batch = 2 }", ""))
    begin(plan, tmp_path / "run", listener)
    why = {plan.cell(one.cell_key).workload: one.turns.alone for _, one in listener.ended}
    assert why["tinycnn"] == ""
    nothing = [c for c in plan.cells if c.workload == "nothing"]
    assert why["nothing"] == ("" if len(nothing) > 1 else "no other cell of its work takes turns")


def test_a_trial_that_was_cut_off_is_made_again_beside_the_reference(tmp_path, listener):
    plan = planned(tmp_path)
    paths = begin(plan, tmp_path / "run", listener)
    (reference,) = plan.reference.values()
    key = next(key for key, block in plan.order if block == 1 and key != reference)
    paths.trial(key, TrialName(1)).outcome.unlink()
    again = Listener()
    assert resume(paths.root, observer=again).done == 6
    assert {(one.cell_key, one.trial) for _, one in again.ended} == {
        (key, "trial-1"),
        (reference, "trial-1.2"),
    }
    made = read_outcome(paths.trial(key, TrialName(1)))
    assert made.turns.together == {key: "trial-1", reference: "trial-1.2"}


def test_a_reference_that_was_cut_off_takes_its_partners_along(tmp_path, listener):
    plan = planned(tmp_path)
    paths = begin(plan, tmp_path / "run", listener)
    (reference,) = plan.reference.values()
    paths.trial(reference, TrialName(2)).outcome.unlink()
    again = Listener()
    resume(paths.root, observer=again)
    ended = {one.cell_key: one for _, one in again.ended}
    assert len(ended) == 3
    assert ended[reference].trial == "trial-2"
    assert {one.trial for key, one in ended.items() if key != reference} == {"trial-2.2"}
    assert ended[reference].turns.together == {key: one.trial for key, one in ended.items()}


def ranks(paths: RunPaths) -> dict[str, int]:
    """Find the processes of the trials that live."""
    alive = {}
    for pid in processes.carriers(processes.mark(f"{identity(paths).id}/", prefix=True)):
        environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        token = next(one for one in environ if one.startswith(b"BAKEOFF_TOKEN="))
        alive[token.decode().split("/")[-2]] = pid
    return alive


LONG = (
    STUDY.replace('until = "35 ms"', 'until = "1 s"')
    .replace('turn = "5 ms"', 'turn = "50 ms"')
    .replace("trials = 2", "trials = 1")
)


class Killer(Listener):
    """Does something once all trials take turns."""

    def __init__(self, paths: RunPaths, act: Any) -> None:
        super().__init__()
        self.paths = paths
        self.act = act
        self.done = False

    def progressed(self, progress: Any) -> None:
        super().progressed(progress)
        if not self.done and progress.turn.startswith("round"):
            self.done = True
            self.act(ranks(self.paths))


def test_a_trial_that_is_killed_among_turns_leaves_the_others_going_on(tmp_path):
    plan = planned(tmp_path, LONG)
    (reference,) = plan.reference.values()
    victim = next(one.key for one in plan.cells if one.key != reference)
    paths = RunPaths(tmp_path / "run")
    listener = Killer(paths, lambda alive: os.kill(alive[victim], 9))
    begin(plan, paths.root, listener)
    ended = {one.cell_key: one for _, one in listener.ended}
    assert listener.done
    assert ended.pop(victim).ended is Ended.FAILED
    assert {one.ended for one in ended.values()} == {Ended.OK}
    for one in ended.values():
        assert {turn["round"] for turn in turns(paths, one)} == set(range(1, one.turns.rounds + 1))
    assert nobody_is_left(paths)


def test_ctrl_c_among_turns_ends_all_and_a_resumed_session_makes_the_block_again(tmp_path):
    plan = planned(tmp_path, LONG)
    paths = RunPaths(tmp_path / "run")
    listener = Killer(paths, lambda _: os.kill(os.getpid(), 2))
    begin(plan, paths.root, listener)
    assert listener.done
    assert {one.ended for _, one in listener.ended} == {Ended.CANCELLED}
    assert nobody_is_left(paths)
    again = Listener()
    assert resume(paths.root, observer=again).ok == 3
    together = [one.turns.together for _, one in again.ended]
    assert len(together) == 3
    assert together[0] == together[1] == together[2]


def test_a_session_that_is_killed_leaves_nobody_stopped_or_alive(tmp_path):
    (tmp_path / "study.toml").write_text(LONG.replace('"1 s"', '"60 s"'))
    argv = [sys.executable, "-m", "harness.cli", "run", "study.toml", "--name", "killed"]
    with subprocess.Popen(
        argv, cwd=tmp_path, stderr=subprocess.DEVNULL, start_new_session=True
    ) as session:
        paths = RunPaths(tmp_path / "runs/killed")
        while not list(tmp_path.glob("runs/killed/cells/*/trial-1/events.0.jsonl")) or not any(
            '"settle"' in one.read_text()
            for one in tmp_path.glob("runs/killed/cells/*/trial-1/events.0.jsonl")
        ):
            assert session.poll() is None
            time.sleep(0.1)
        session.kill()
    end = time.monotonic() + 60
    while not nobody_is_left(paths) and time.monotonic() < end:
        time.sleep(0.1)
    assert nobody_is_left(paths)
    assert list(tmp_path.glob("runs/killed/cells/*/trial-1/outcome.json")) == []


def test_cells_that_cannot_live_together_form_groups_around_the_reference(
    tmp_path, listener, monkeypatch
):
    plan = planned(tmp_path)
    (reference,) = plan.reference.values()
    monkeypatch.setattr("harness.run.turns.block.available_bytes", lambda: 5)
    monkeypatch.setattr("harness.run.turns.memory.MemoryUse.needed_bytes", lambda *_: 2)
    begin(plan, tmp_path / "run", listener)
    first = [one for _, one in listener.ended if one.trial.startswith("trial-1")]
    groups = {tuple(sorted(one.turns.together)) for one in first}
    assert groups == {
        tuple(sorted((reference, one.key))) for one in plan.cells if one.key != reference
    }
    assert sorted(one.trial for one in first if one.cell_key == reference) == [
        "trial-1",
        "trial-1.2",
    ]


def test_cells_too_large_for_company_run_alone_and_say_so(tmp_path, listener, monkeypatch):
    monkeypatch.setattr("harness.run.turns.block.available_bytes", lambda: 3)
    monkeypatch.setattr("harness.run.turns.memory.MemoryUse.needed_bytes", lambda *_: 2)
    begin(planned(tmp_path), tmp_path / "run", listener)
    assert {one.turns.alone for _, one in listener.ended} == {
        "beside another trial it does not fit into memory"
    }


def test_progress_tells_the_round_and_how_many_take_turns(tmp_path):
    paths = RunPaths(tmp_path / "run")
    listener = Killer(paths, lambda _: None)
    begin(planned(tmp_path, LONG), paths.root, listener)
    told = {one.turn for one in listener.progress}
    assert told <= {"", *(f"round {n} of 20, 3 by turns" for n in range(21))} | {
        f"{doing}, {n} by turns" for doing in ("warming up", "ending") for n in (1, 2, 3)
    }
    assert any(one.startswith("round") for one in told)


def test_all_ranks_of_a_trial_take_the_same_turns(tmp_path, listener):
    text = STUDY.replace(
        "batch = [1, 2, 4]", 'batch = [1, 2]\nstrategy = "ddp"\nranks_per_node = 2'
    )
    paths = begin(planned(tmp_path, text), tmp_path / "run", listener)
    assert [one.ended for _, one in listener.ended] == [Ended.OK] * 4
    for _, one in listener.ended:
        trial = paths.trial(one.cell_key, TrialName.parse(one.trial))
        told = [
            [
                (turn["number"], turn["round"], turn["disturbed"])
                for turn in map(json.loads, trial.events(rank).read_text().splitlines())
                if turn["event"] == "turn"
            ]
            for rank in (0, 1)
        ]
        assert told[0] == told[1]
        assert {number for _, number, _ in told[0]} == set(range(1, one.turns.rounds + 1))


def test_without_a_declared_reference_the_pilot_s_fastest_cell_is_it(tmp_path, listener):
    text = STUDY.replace("reference = { batch = 2 }", "").replace("trials = 2", "trials = 6")
    plan = planned(tmp_path, text.replace("batch = [1, 2, 4]", "batch = [1, 2]"))
    begin(plan, tmp_path / "run", listener)
    pilots = [one for _, one in listener.ended if one.trial == "trial-0"]
    assert [one.turns for one in pilots] == [None, None]
    others = [one for _, one in listener.ended if one.trial != "trial-0"]
    assert len(others) == 12
    (reference,) = {one.turns.reference for one in others}
    assert reference in {one.key for one in plan.cells}


def test_a_reference_that_is_rejected_is_measured_again_with_all_its_partners(tmp_path, listener):
    plan = planned(tmp_path, STUDY.replace("trials = 2", "trials = 1"))
    (reference,) = plan.reference.values()

    def reject(trial: TrialPaths) -> str | None:
        return "disturbed" if trial.root.parent.name == reference else None

    start(plan, root=tmp_path / "run", study_text=STUDY, observer=listener, rejects=reject)
    ended = [(one.cell_key == reference, one.trial) for _, one in listener.ended]
    assert sorted(ended) == [
        *[(False, "trial-1")] * 2,
        *[(False, "trial-1.2")] * 2,
        (True, "trial-1"),
        (True, "trial-1.2"),
    ]


class EverythingIsDue:
    """What a run needs before anything of it has run."""

    def needs(self, key, block):
        return TrialName(block)

    def given_up(self, key):
        return None


def test_a_cell_that_was_too_large_once_is_not_called_so_for_ever(tmp_path, monkeypatch):
    plan = planned(tmp_path)
    keys = [one.key for one in plan.cells]
    (tmp_path / "run/cells").mkdir(parents=True)
    blocks = Blocks(plan, RunPaths(tmp_path / "run"), EverythingIsDue(), None)
    monkeypatch.setattr("harness.run.turns.block.available_bytes", lambda: 1)
    assert blocks.groups(1, keys, lambda _: False) == []
    assert blocks.why_alone(keys[0], 1).alone == TOO_LARGE
    assert blocks.groups(2, keys, lambda key: key != keys[0]) == []
    assert blocks.why_alone(keys[0], 2).alone == LEFT_ALONE


def test_both_sides_of_a_pair_live_in_one_group_however_many_pairs_a_task_has(
    tmp_path, monkeypatch
):
    side = planned(tmp_path, STUDY.replace("[1, 2, 4]", "[1, 2, 4, 8, 16, 32]"))
    plan = two_sided("both", Side("one", side, None), Side("two", side, None))
    (tmp_path / "run/cells").mkdir(parents=True)
    blocks = Blocks(plan, RunPaths(tmp_path / "run"), EverythingIsDue(), None)
    monkeypatch.setattr("harness.run.turns.block.available_bytes", lambda: None)
    keys = [one.key for one in plan.cells]
    groups = blocks.groups(1, keys[::-1], lambda _: False)
    pairs = {frozenset((one.key, one.against)): one.against for one in plan.cells if one.against}
    assert len(pairs) == 6
    assert {frozenset(group.keys): group.reference for group in groups} == pairs
