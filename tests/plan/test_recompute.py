"""Plan recomputed blocks: a framework that does it, and a network that has some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness import plugins
from harness.plan.plan import Plan
from harness.plan.rules import recompute_rules

STUDY = """\
title = "T"
[matrix]
workload = "{workload}"
framework = ["torch", "jax"]
recompute = {recompute}
[measure]
trials = 1
"""


def test_a_cell_that_recomputes_is_another_one(planned: Callable[..., Plan]) -> None:
    plan = planned(STUDY.format(workload="tinygpt", recompute="[false, true]"))
    keys = {(one.framework, one.factors["recompute"]): one.key for one in plan.cells}
    assert keys.keys() == {("torch", False), ("torch", True), ("jax", False)}
    assert len(set(keys.values())) == len(keys)
    silent = planned(STUDY.format(workload="tinygpt", recompute="false")).cells
    assert {one.key for one in silent} < set(keys.values())
    (hole,) = plan.holes
    assert hole.why == "jax does not offer recompute true (it has: false)"


@pytest.mark.parametrize(
    ("workload", "why"),
    [
        ("tinygpt", None),
        ("tinybert", None),
        ("resnet50", None),
        ("tinycnn", None),
        (
            "alexnet",
            (
                "alexnet has no blocks to be computed twice: recompute is for networks of "
                "residuals, as ResNet and transformers are"
            ),
        ),
        ("gemm", "recompute is about training a network, and gemm is something else"),
    ],
)
def test_what_has_no_blocks_cannot_compute_them_twice(workload: str, why: str | None) -> None:
    asked: dict[str, Any] = {"recompute": True}
    assert recompute_rules.why_not(plugins.workload(workload), asked) == why
    assert recompute_rules.why_not(plugins.workload(workload), {"recompute": False}) is None


def test_what_is_no_flag_is_refused(refusal: Callable[..., str]) -> None:
    told = refusal(STUDY.format(workload="tinygpt", recompute='"blocks"'))
    assert "recompute" in told
    assert "'blocks' must be true or false" in told
