from __future__ import annotations

from collections import Counter

import pytest

from harness.run.ledger import TimeLeft, given_up, next_attempt
from harness.store.layout import TrialName


def outcomes(**ended: str):
    return {
        TrialName.parse(name.replace("_", "-").replace("v", ".")): {"outcome": one}
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


def test_a_trial_lost_with_its_node_is_tried_once_more():
    assert next_attempt(1, outcomes(trial_1="node-lost")) == TrialName(1, 2)
    assert next_attempt(1, outcomes(trial_1="node-lost", trial_1v2="node-lost")) is None


def test_a_cell_is_given_up_when_trying_on_would_waste_time():
    assert given_up(outcomes(trial_1="unsupported")) == "unsupported"
    assert given_up(outcomes(trial_1="out-of-memory")) == "out-of-memory"
    assert given_up(outcomes(trial_1="failed")) is None
    assert given_up(outcomes(trial_1="failed", trial_2="timed-out")) == "failed 2 times"
    assert given_up(outcomes(trial_1="failed", trial_2="ok", trial_3="failed")) is None
    assert given_up(outcomes(trial_1="cancelled", trial_2="cancelled")) is None


def test_the_time_left_is_learnt_from_the_trials_of_the_same_cell():
    left = TimeLeft({"a": 10.0, "b": 100.0}, Counter(a=2, b=1))
    assert left.seconds("a", 4.0) == 116.0
    left.took("a", 30.0)
    left.took("a", 50.0)
    assert left.seconds("a", 4.0) == 176.0
    assert left.seconds("a", 400.0) == 140.0
