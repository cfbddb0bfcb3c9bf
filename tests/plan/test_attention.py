"""Plan how attention is computed: what an adapter does by itself, and what it cannot do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.plan.plan import Plan

Planned = Callable[..., Plan]

STUDY = """\
title = "T"
[matrix]
workload = "{workload}"
framework = ["torch", "jax"]
{more}
[measure]
trials = 1
"""


def study(workload: str, attention: object = None) -> str:
    return STUDY.format(
        workload=workload, more="" if attention is None else f"attention = {attention}"
    )


@pytest.mark.parametrize("workload", ["tinygpt", "tinyvit"])
def test_a_cell_says_how_its_adapter_computes_attention_though_nobody_asked(
    planned: Planned, workload: str
) -> None:
    told = {one.framework: one.factors["attention"] for one in planned(study(workload)).cells}
    assert told == {"torch": "fused", "jax": None}


def test_what_an_adapter_does_by_itself_makes_no_other_cell(planned: Planned) -> None:
    silent = {one.framework: one.key for one in planned(study("tinygpt")).cells}
    stated = {
        one.factors["attention"]: one.key
        for one in planned(study("tinygpt", '["fused", "plain"]')).cells
    }
    assert stated["fused"] == silent["torch"]
    assert stated["plain"] != silent["torch"]


def test_what_an_adapter_cannot_do_is_a_hole_with_its_reason(planned: Planned) -> None:
    holes = planned(study("tinygpt", '["fused", "plain"]')).holes
    assert {one.why for one in holes} == {
        "jax does not offer attention fused",
        "jax does not offer attention plain",
    }


def test_what_has_no_attention_says_nothing_of_it(planned: Planned) -> None:
    assert {one.factors["attention"] for one in planned(study("tinycnn")).cells} == {None}
    both = STUDY.format(workload="tinygpt", more="") + (
        '[[include]]\nworkload = "tinycnn"\nframework = "torch"\nattention = "plain"\n'
    )
    (hole,) = planned(both).holes
    assert hole.why == "tinycnn has no attention: attention says something of transformers"


def test_what_is_no_way_to_compute_attention_is_refused(refusal: Callable[..., str]) -> None:
    told = refusal(study("tinygpt", '"flash"'))
    assert "'flash' is no value of attention" in told
    assert "fused, plain" in told
