"""Equal nodes give bit-equal losses; who differs from what the others agree on is named."""

from __future__ import annotations

import math

from harness.analysis.nodes.fingerprint import mismatches

EQUAL = [
    (node, trial, 0, step, 2.3 - 0.1 * step)
    for node in ("cn1", "cn2", "cn3", "cn4")
    for trial in ("trial-1", "trial-2")
    for step in (1, 2, 3)
]


def test_equal_losses_name_nobody() -> None:
    assert mismatches(EQUAL) == ((), "Losses of 3 steps are bit-equal on 4 of 4 nodes.")


def test_a_flipped_bit_in_one_trial_names_its_node_and_the_first_step() -> None:
    flipped = [
        (node, trial, rank, step, math.nextafter(loss, 9.0))
        if (node, trial) == ("cn3", "trial-2") and step > 1
        else (node, trial, rank, step, loss)
        for node, trial, rank, step, loss in EQUAL
    ]
    (one,), said = mismatches(flipped)
    assert (one.node, one.trials, one.of, one.step) == ("cn3", 1, 2, 2)
    assert one.value != one.expected == 2.3 - 0.2
    assert said == "Losses of 3 steps are bit-equal on 3 of 4 nodes."


def test_nodes_agree_not_trials_of_which_a_sick_node_may_have_more() -> None:
    further = [("cn1", f"trial-{number}", 0, 4, 1.5) for number in (1, 2, 3, 4)]
    further += [(node, "trial-1", 0, 4, 1.9) for node in ("cn2", "cn3", "cn4")]
    (one,), _ = mismatches([*EQUAL, *further])
    assert (one.node, one.trials, one.step) == ("cn1", 4, 4)


def test_a_loss_that_is_no_number_is_compared_too() -> None:
    wrong = [*EQUAL[:-1], ("cn4", "trial-2", 0, 3, math.nan)]
    assert mismatches(wrong)[0][0].node == "cn4"


def test_where_nobody_agrees_nobody_is_named() -> None:
    own = [(node, "trial-1", 0, 1, number / 3) for number, node in enumerate(("a", "b", "c"))]
    named, said = mismatches(own)
    assert named == ()
    assert "only 1 of 3 nodes agree" in said


def test_two_nodes_or_steps_of_which_no_two_are_the_same_are_not_compared() -> None:
    assert "were not compared" in mismatches(EQUAL[:12])[1]
    apart = [(f"cn{number}", "trial-1", 0, number, 1.0) for number in range(4)]
    assert "were not compared" in mismatches(apart)[1]


def test_each_rank_of_a_node_is_held_to_its_like_and_the_first_to_differ_is_told() -> None:
    ranks = [
        (f"cn{node}", "trial-1", rank, step, 1.0 + rank + step)
        for node in range(4)
        for rank in range(8)
        for step in (1, 2)
    ]
    assert mismatches(ranks) == ((), "Losses of 2 steps are bit-equal on 4 of 4 nodes.")
    sick = [
        (node, trial, rank, step, -loss)
        if node == "cn1" and (rank, step) in ((5, 1), (0, 2))
        else (node, trial, rank, step, loss)
        for node, trial, rank, step, loss in ranks
    ]
    (one,), _ = mismatches(sick)
    assert (one.node, one.step, one.rank) == ("cn1", 1, 5)
