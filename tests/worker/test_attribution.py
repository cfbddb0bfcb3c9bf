"""Divide traced steps: what runs shares the time, when nothing runs there is a gap."""

from __future__ import annotations

import pytest

from harness.worker.attribution.account import Operation, Ran, attribution
from harness.worker.attribution.marks import (
    BACKWARD,
    EXCHANGE,
    FORWARD,
    GAPS,
    OF_LOSS,
    OF_UPDATE,
    UNMARKED,
    Marks,
    Place,
)
from workloads.tinycnn import WORKLOAD

CONV, FC, GAP = Place("conv1", FORWARD), Place("fc", BACKWARD), Place("", GAPS)


def ran(start: int, end: int, place: Place = CONV, lane: object = 0, name: str = "conv") -> Ran:
    return Ran(start, end, lane, place, Operation(name, "float32", "2x3"))


def shares(
    *what: Ran, steps: tuple[tuple[int, int], ...] = ((0, 100),)
) -> dict[Place, list[float]]:
    found = attribution("a trace", steps, what, [])
    for number in range(len(steps)):
        assert sum(part.shares[number] for part in found.parts) == pytest.approx(1)
    return {part.place: part.shares for part in found.parts}


def test_a_moment_in_which_nothing_runs_is_a_gap() -> None:
    assert shares(ran(10, 40)) == {CONV: [0.3], GAP: [0.7]}


def test_of_a_gap_it_is_said_before_what_it_lies() -> None:
    steps = ((0, 100), (100, 200))
    said = (ran(10, 30), ran(50, 60, FC), ran(65, 75, UNMARKED), ran(110, 200))
    (gap,) = [one for one in attribution("", steps, said, []).parts if one.place == GAP]
    told = {one["name"]: (one["times"], round(one["share"], 3)) for one in gap.operations}
    assert told == {
        "after the last operation": (0.5, 0.357),
        "before what carries no mark": (0.5, 0.071),
        "before conv1 forward": (1, 0.286),
        "before fc backward": (0.5, 0.286),
    }


def test_on_one_thread_the_innermost_operation_takes_the_time() -> None:
    assert shares(ran(0, 100), ran(20, 50, FC)) == {CONV: [0.7], FC: [0.3], GAP: [0]}


def test_operations_on_several_threads_share_the_time_in_equal_parts() -> None:
    found = shares(ran(0, 100), ran(50, 100, FC, lane=1))
    assert found == {CONV: [0.75], FC: [0.25], GAP: [0]}


def test_what_ranks_exchange_takes_the_moments_in_which_nothing_else_runs() -> None:
    both = Place("", EXCHANGE)
    said = (ran(0, 40), ran(20, 80, both, lane=-1), ran(30, 70, both, lane=-2), ran(60, 65, FC))
    assert shares(*said) == {CONV: [0.4], FC: [0.05], both: [0.35], GAP: [pytest.approx(0.2)]}


def test_an_exchange_that_holds_the_only_thread_is_not_hidden_by_what_waits_for_it() -> None:
    both = Place("", EXCHANGE)
    said = [
        ran(0, 10),
        ran(10, 90, lane=(0, 0))._replace(holds=False),
        ran(10, 80, both, lane=1),
    ]
    alone, two = (
        {one.place: one.shares for one in attribution("", ((0, 100),), said, [], threads).parts}
        for threads in (1, 2)
    )
    assert alone == {CONV: [0.2], both: [0.7], GAP: [pytest.approx(0.1)]}
    assert two == {CONV: [0.9], GAP: [pytest.approx(0.1)]}


def test_what_goes_on_in_other_threads_is_kept_by_itself() -> None:
    said = [ran(0, 10), ran(10, 90, lane=(0, 0))._replace(holds=False), ran(30, 70, FC, lane=1)]
    (step,) = attribution("", ((0, 100),), said, [], 2).kept
    assert [(one.start, one.end) for one in step.operations] == [(0, 10), (10, 90), (30, 70)]


@pytest.mark.parametrize(("threads", "conv"), [(1, 0.5), (2, 0.7), (4, 0.7)])
def test_what_waits_for_a_thread_takes_none_of_another_s_time(threads: int, conv: float) -> None:
    said = [
        ran(0, 10),
        ran(10, 90, lane=(0, 0))._replace(holds=False),  # or runs in another thread
        ran(30, 70, FC, lane=1),
    ]
    parts = attribution("", ((0, 100),), said, [], threads).parts
    found = {one.place: one.shares[0] for one in parts}
    assert found == {CONV: pytest.approx(conv), FC: pytest.approx(0.9 - conv), GAP: 0.1}
    (own,) = [one for one in parts if one.place == CONV]
    assert [one["times"] for one in own.operations] == [1]


def test_each_step_has_its_own_shares_and_what_lies_between_steps_counts_for_none() -> None:
    found = shares(ran(0, 90), ran(120, 170, FC), steps=((0, 100), (120, 220)))
    assert found == {CONV: [0.9, 0], FC: [0, 0.5], GAP: [pytest.approx(0.1), 0.5]}


def test_an_operation_of_no_length_takes_nothing_and_ends() -> None:
    assert shares(ran(10, 10, FC), ran(20, 30))[CONV] == [0.1]


def test_operations_are_counted_by_the_step_and_those_that_took_longest_come_first() -> None:
    steps = ((0, 100), (100, 200))
    said = [ran(0, 10), ran(10, 20), ran(100, 160, name="copy"), ran(160, 170), ran(170, 180)]
    (part,) = [one for one in attribution("", steps, said, []).parts if one.place == CONV]
    assert [(one["name"], one["times"]) for one in part.operations] == [("copy", 0.5), ("conv", 2)]
    assert part.operations[0]["share"] == pytest.approx(0.6)


def test_of_many_kinds_of_operations_the_rest_is_counted() -> None:
    said = [ran(at, at + 1, name=f"kind {at}") for at in range(20)]
    (part,) = [one for one in attribution("", ((0, 100),), said, []).parts if one.place == CONV]
    assert (len(part.operations), part.more) == (12, 8)


MARKS = Marks(WORKLOAD.network)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("jit(step)/jvp({conv1})/conv_general_dilated", CONV),
        ("jit(step)/transpose(jvp({fc}))/dot_general", FC),
        ("jit(step)/jvp({block})/{block/conv1}/add", Place("block/conv1", FORWARD)),
        (
            "jit(step)/transpose(jvp())/rematted_computation/{block/conv1}/add",
            Place("block/conv1", FORWARD),
        ),
        ("{conv1}/BiasAdd", CONV),
        ("gradient_tape/{fc}/MatMul/MatMul_1", FC),
        ("gradients/{fc}/MatMul_grad/MatMul", FC),
        ("jit(step)/transpose(jvp(bakeoff_loss))/div", Place("", OF_LOSS)),
        ("bakeoff_update/{conv1}/ResourceApplyMomentum", Place("", OF_UPDATE)),
        ("jit(step)/convert", UNMARKED),
        ("bakeoff_site_99/Conv2D", UNMARKED),
    ],
)
def test_the_name_of_an_operation_says_its_layer_and_pass(name: str, place: Place) -> None:
    for path in MARKS.paths:
        name = name.replace(f"{{{path}}}", MARKS.of(path))
    assert MARKS.place(name) == place


def test_a_gradient_without_a_name_belongs_to_what_it_updates() -> None:
    assert MARKS.of_gradient("state.moments[0]['fc/weight']", "") == FC
    assert MARKS.of_gradient("", f"bakeoff_update/{MARKS.of('fc')}/ResourceApplyMomentum") == FC
    assert MARKS.of_gradient("given.input", "bakeoff_update/add") == UNMARKED
