"""Plan networks of texts at other lengths: what runs, what is left out and why, what is equal."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.plan.plan import Plan

Planned = Callable[..., Plan]

STUDY = """\
title = "T"
[matrix]
workload = {workloads}
framework = "torch"
{more}
[measure]
trials = 1
"""
POSITIONS = 64


def study(*workloads: str, sequence: object = None) -> str:
    named = "[" + ", ".join(f'"{one}"' for one in workloads) + "]"
    more = "" if sequence is None else f"sequence = {sequence}"
    return STUDY.format(workloads=named, more=more)


def test_a_cell_says_how_many_tokens_it_has_though_nobody_asked(planned: Planned) -> None:
    cells = {one.workload: one for one in planned(study("tinygpt", "tinybert", "tinyvit")).cells}
    lengths = {name: one.factors["sequence"] for name, one in cells.items()}
    assert lengths == {"tinygpt": 64, "tinybert": 32, "tinyvit": None}
    assert cells["tinygpt"].unit == "tokens"
    assert cells["tinyvit"].unit == "images"


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(st.integers(1, 2 * POSITIONS), min_size=1, max_size=4))
def test_a_length_runs_exactly_where_the_network_holds_its_positions(
    planned: Planned, lengths: set[int]
) -> None:
    plan = planned(study("tinygpt", "tinyllama", sequence=sorted(lengths)))
    ran = {one.factors["sequence"] for one in plan.cells if one.workload == "tinygpt"}
    assert ran == {one for one in lengths if one <= POSITIONS}
    assert {hole.why for hole in plan.holes} == {
        f"tinygpt holds 64 positions: a sequence of {one} tokens is too long"
        for one in lengths - ran
    }
    turning = [one for one in plan.cells if one.workload == "tinyllama"]
    assert {one.factors["sequence"] for one in turning} == lengths
    assert len({one.key for one in plan.cells}) == len(plan.cells)
    for one in turning:
        length = one.factors["sequence"]
        assert one.parameters == 131_392
        assert one.macs == length * (131_072 + 256 * length)
        assert one.epoch_samples == 1_003_854 // 64 * 64 // length


def test_the_length_that_a_network_is_described_at_makes_no_other_cell(planned: Planned) -> None:
    (silent,) = planned(study("tinygpt")).cells
    (stated,) = planned(study("tinygpt", sequence=POSITIONS)).cells
    assert silent.key == stated.key


@pytest.mark.parametrize(
    ("workload", "sequence", "why"),
    [
        ("tinyvit", 64, "tinyvit is fed no tokens: sequence is for bert-base, gpt2-124m, "),
        ("alexnet", 64, "alexnet is fed no tokens: sequence is for "),
        ("tinybert", 50, "tinybert holds 48 positions: a sequence of 50 tokens is too long"),
        ("tinybert", 33, "tinybert has no form of 33 tokens: layer 'sentences': 2 segments do not"),
        ("tinybert", 2, "tinybert has no form of 2 tokens: "),
    ],
)
def test_a_length_that_a_workload_cannot_have_is_a_hole_with_its_reason(
    planned: Planned, workload: str, sequence: int, why: str
) -> None:
    plan = planned(
        study("tinygpt", sequence=sequence) + f'[[include]]\nworkload = "{workload}"\n'
        f'framework = "torch"\nsequence = {sequence}\n'
    )
    assert [hole.why for hole in plan.holes if hole.why.startswith(why)]


@pytest.mark.parametrize(("value", "why"), [(0, "an integer from 1 up"), ('"long"', "an integer")])
def test_what_is_no_length_is_refused_with_its_line(
    refusal: Callable[..., str], value: object, why: str
) -> None:
    told = refusal(study("tinygpt", sequence=value))
    assert "mine.toml:5: matrix.sequence" in told
    assert why in told
