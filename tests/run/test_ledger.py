from __future__ import annotations

import random

import pytest

from harness.run.ledger import TimeLeft
from harness.store.layout import TrialName
from harness.store.run_directory.due import Due, given_up, next_attempt
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


def six_blocks(*, blocks=6, **lost):
    """Give what is due of two cells whose trials are over; lost: cell -> its bad ends."""
    order = [(key, block) for block in range(1, blocks + 1) for key in "ab"]
    due = Due(order, {})
    for key, block in order:
        due.enter(key, TrialName(block), ended_as(lost.get(key, {}).get(block, "ok")))
    return due


@pytest.mark.parametrize("ended", ["failed", "timed-out", "out-of-memory"])
def test_a_lost_trial_is_made_up_for_until_six_blocks_are_whole(ended):
    due = six_blocks(a={3: ended})
    assert due.left() == {"a": 1}
    assert due.needs("a", 3) == TrialName(3, 2)
    due.enter("a", TrialName(3, 2), ended_as("ok"))
    assert not due.left()


def test_no_lost_trial_is_made_up_for_where_six_blocks_are_whole_without_it():
    assert not six_blocks(blocks=7, a={3: "failed"}).left()
    due = six_blocks(blocks=7, a={3: "failed"}, b={5: "timed-out"})
    assert due.left() == {"a": 1, "b": 1}
    due.enter("b", TrialName(5, 2), ended_as("ok"))
    assert not due.left()


def test_a_cell_that_goes_on_failing_is_not_repeated_for_ever():
    due = six_blocks(a=dict.fromkeys((2, 3, 4), "failed"))
    for _ in range(2):
        block = next(block for block in range(1, 7) if due.needs("a", block))
        due.enter("a", TrialName(block, 2), ended_as("failed"))
    assert not due.left()


def test_nothing_is_made_up_for_where_six_blocks_were_never_planned_or_repeating_stopped():
    assert not six_blocks(blocks=5, a={3: "failed"}).left()
    due = Due([("a", block) for block in range(1, 9)], {})
    for block in range(1, 7):
        due.enter("a", TrialName(block), ended_as("failed" if block == 2 else "ok"))
    due.stop_after(6)
    assert not due.left()
    assert due.needs("a", 2) is None


def test_a_cell_that_was_given_up_makes_no_others_be_repeated():
    due = six_blocks(a=dict.fromkeys(range(1, 7), "unsupported"))
    assert not due.left()


def test_trials_that_are_lost_at_random_leave_nearly_every_comparison_its_blocks():
    chance = random.Random(1)

    def ends():
        return ended_as("failed" if chance.random() < 0.05 else "ok")

    whole = {False: 0, True: 0}
    for _ in range(300):
        ok = set()
        due = Due([(key, block) for block in range(1, 7) for key in "ab"], {})
        for block in range(1, 7):
            for key in "ab":
                due.enter(key, TrialName(block), ends())
        whole[False] += not due.failed()
        for block, key in [(block, key) for block in range(1, 7) for key in "ab"]:
            if (name := due.needs(key, block)) is not None:
                due.enter(key, name, ends())
                ok.add((key, block))
        lost = [
            one for one in due.failed() if one[1].attempt == 2 or (one[0], one[1].block) not in ok
        ]
        whole[True] += not lost
    assert whole[False] / 300 < 0.6
    assert whole[True] / 300 > 0.95


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


@pytest.mark.parametrize("seed", range(5))
def test_trials_read_together_leave_due_what_trials_that_end_one_by_one_do(seed):
    chance = random.Random(seed)
    keys = [f"cell-{number}" for number in range(30)]
    order = [(key, block) for block in range(11) for key in keys]
    bad = ["failed", "timed-out", "out-of-memory", "cancelled", "unsupported"]
    how = chance.choices(["ok", *bad], [2, *[0.2] * 5], k=300)
    told = {key: {} for key in keys}
    for at, ended in zip(chance.sample(order, 300), how, strict=True):
        told[at[0]][TrialName(at[1])] = ended_as(ended)
    together, one_by_one = Due(order, told), Due(order, {})
    for key, name in chance.sample([(k, n) for k, some in told.items() for n in some], 300):
        one_by_one.enter(key, name, told[key][name])
    assert together.count() == one_by_one.count()
    assert together.left() == one_by_one.left()
    assert [together.needs(*at) for at in order] == [one_by_one.needs(*at) for at in order]


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
