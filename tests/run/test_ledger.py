from __future__ import annotations

import pytest

from harness.run.due import Due, given_up, next_attempt
from harness.run.ledger import TimeLeft
from harness.store.layout import TrialName
from tests.outcomes import ended as ended_as


def outcomes(**ended: str):
    return {
        TrialName.parse(name.replace("_", "-").replace("v", ".")): ended_as(one)
        for name, one in ended.items()
    }


@pytest.mark.parametrize("outcome", ["ok", "failed", "timed-out", "out-of-memory", "unsupported"])
def test_what_is_complete_is_never_repeated(outcome):
    assert next_attempt(1, outcomes(trial_1=outcome)) is None


def test_a_block_without_a_trial_needs_its_first_attempt():
    assert next_attempt(2, outcomes(trial_1="ok")) == TrialName(2)


def test_a_cancelled_trial_needs_another_attempt_however_often():
    assert next_attempt(1, outcomes(trial_1="cancelled")) == TrialName(1, 2)
    assert next_attempt(1, outcomes(trial_1="cancelled", trial_1v2="cancelled")) == TrialName(1, 3)


def test_a_trial_lost_with_its_node_needs_another_attempt_however_often():
    assert next_attempt(1, outcomes(trial_1="node-lost")) == TrialName(1, 2)
    lost = outcomes(trial_1="node-lost", trial_1v2="node-lost")
    assert next_attempt(1, lost) == TrialName(1, 3)


def test_lost_nodes_never_condemn_a_cell():
    assert given_up(outcomes(trial_1="node-lost", trial_1v2="node-lost")) is None
    due = Due(ORDER, {"a": outcomes(trial_1="node-lost", trial_1v2="node-lost")})
    assert due.left() == {"a": 2, "b": 2}
    assert given_up(outcomes(trial_1="failed", trial_1v2="node-lost")) is None


def test_what_failed_is_due_again_once_it_is_retried_until_it_fails_again():
    due = Due(ORDER, {"a": outcomes(trial_1="failed", trial_2="timed-out")})
    assert due.given_up("a") == "failed 2 times"
    failed = due.failed()
    assert failed == [("a", TrialName(1)), ("a", TrialName(2))]
    for key, name in failed:
        due.retry(key, name)
    assert due.given_up("a") is None
    assert due.needs("a", 1) == TrialName(1, 2)
    assert due.left() == {"a": 2, "b": 2}
    due.enter("a", TrialName(1, 2), ended_as("failed"))
    due.enter("a", TrialName(2, 2), ended_as("failed"))
    assert due.given_up("a") == "failed 2 times"
    assert due.failed(["b"]) == []


def test_a_cell_is_given_up_when_trying_on_would_waste_time():
    assert given_up(outcomes(trial_1="unsupported")) == "unsupported"
    assert given_up(outcomes(trial_1="out-of-memory")) == "out-of-memory"
    assert given_up(outcomes(trial_1="failed")) is None
    assert given_up(outcomes(trial_1="failed", trial_2="timed-out")) == "failed 2 times"
    assert given_up(outcomes(trial_1="failed", trial_2="ok", trial_3="failed")) is None
    assert given_up(outcomes(trial_1="cancelled", trial_2="cancelled")) is None


ORDER = [("a", 1), ("b", 1), ("b", 2), ("a", 2)]


def test_trials_are_done_due_or_skipped():
    due = Due(ORDER, {"a": outcomes(trial_1="ok"), "b": outcomes(trial_1="unsupported")})
    count = due.count()
    assert (count.total, count.done, count.ok, count.skipped, count.left) == (4, 2, 1, 1, 1)
    assert due.left() == {"a": 1}
    assert due.waiting() == {"a"}


def test_a_trial_that_cannot_be_believed_is_due_until_its_next_attempt():
    due = Due(ORDER, {"a": outcomes(trial_1="ok", trial_2="ok")})
    due.owe("a", TrialName(1))
    assert due.needs("a", 1) == TrialName(1, 2)
    assert (due.left()["a"], due.count().done) == (1, 1)
    due.enter("a", TrialName(1, 2), ended_as("ok"))
    due.owe("a", TrialName(1))
    assert "a" not in due.left()


@pytest.mark.parametrize("names", [["trial_1", "trial_1v2"], ["trial_1v2", "trial_1"]])
def test_the_last_attempt_decides_in_whatever_order_trials_are_read(names):
    told = {"trial_1": "ok", "trial_1v2": "cancelled"}
    due = Due([("a", 1)], {"a": outcomes(**{name: told[name] for name in names})})
    assert due.left() == {"a": 1}


def test_blocks_after_the_one_that_was_enough_are_not_planned():
    due = Due(ORDER, {"a": outcomes(trial_1="ok"), "b": outcomes(trial_1="ok", trial_2="ok")})
    due.stop_after(1)
    count = due.count()
    assert (count.total, count.done, count.left) == (2, 2, 0)
    assert due.blocks() == [(1, ["a", "b"])]


def test_trials_of_other_sessions_are_not_due_here_but_tell_of_a_hopeless_cell():
    due = Due([("a", 1)], {"a": outcomes(trial_2="cancelled"), "c": outcomes(trial_1="failed")})
    assert due.left() == {"a": 1}
    assert Due([("a", 1)], {"a": outcomes(trial_2="unsupported")}).left() == {}


def test_the_time_left_is_learnt_from_the_trials_of_the_same_cell():
    left = TimeLeft({"a": 10.0, "b": 100.0})
    two = {"a": 2, "b": 1}
    assert left.seconds(two, "a", 4.0) == 116.0
    left.took("a", 30.0)
    left.took("a", 50.0)
    assert left.seconds(two, "a", 4.0) == 176.0
    assert left.seconds(two, "a", 400.0) == 140.0
