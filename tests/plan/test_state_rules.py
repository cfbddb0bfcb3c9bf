from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from harness import plugins
from harness.plan.plan import Plan
from harness.plan.rules import state_rules
from harness.platform.platform import Platform
from harness.study.framework import framework_info
from harness.study.framework_file import Strategy
from harness.worker.scale import Scale

CPU = {"device": "cpu", "precision": "fp32", "strategy": "none"}
GPU = {**CPU, "device": "gpu"}
DDP = {**CPU, "strategy": "ddp"}
STATE = "for its weights and what training keeps beside them"
STUDY = """\
title = "T"
[matrix]
workload = ["tinygpt", "tinyllama", "tinyvit", "gpt2-124m", "llama-3-1-8b"]
framework = "torch"
batch = 4
[measure]
trials = 1
"""


def test_what_cannot_fit_is_left_out_and_the_others_stay(planned: Callable[..., Plan]) -> None:
    plan = planned(STUDY)
    stay = {"tinygpt", "tinyllama", "tinyvit", "gpt2-124m"}
    assert {one.workload for one in plan.cells} == stay
    (hole,) = plan.holes
    assert hole.why == f"llama-3-1-8b needs at least 128.5 GB of a node, {STATE}; box has 8.6 GB"


@pytest.mark.parametrize(
    ("name", "factors", "ranks", "needed"),
    [
        ("llama-3-2-1b", CPU, 1, 1_235_814_400 * 16),
        ("llama-3-2-1b", {**CPU, "precision": "bf16"}, 1, 1_235_814_400 * 14),
        ("llama-3-2-1b", {**CPU, "precision": "bf16-pure"}, 1, 1_235_814_400 * 8),
        ("llama-3-2-1b", DDP, 2, 1_235_814_400 * 32),
        ("llama-3-2-1b", {**DDP, "device": "gpu"}, 2, 1_235_814_400 * 16),
        ("resnet50", CPU, 1, 25_557_032 * 8),
        ("checkpoint-resnet50", CPU, 1, 25_557_032 * 8),
    ],
)
def test_a_byte_too_few_is_refused_and_enough_is_not(
    machine: Callable[..., Platform],
    name: str,
    factors: Mapping[str, Any],
    ranks: int,
    needed: int,
) -> None:
    def why(there: int) -> str | None:
        node = {"cpus": 2, "memory": [{"kind": "DDR", "size": f"{there} B"}]}
        gpus = [{"model": "G", "count": 2, "memory": f"{there} B"}]
        small = {"cpus": 2, "memory": [{"kind": "DDR", "size": "1 GB"}]}
        on_gpu = factors["device"] == "gpu"
        box = machine(node=small if on_gpu else node, accelerators=gpus if on_gpu else [])
        scale = Scale(ranks_per_node=ranks)
        info = framework_info("torch")
        return state_rules.why_not(plugins.workload(name), info, factors, box, scale=scale)

    assert why(needed) is None
    refusal = why(needed - 1)
    assert refusal is not None
    assert "each GPU" in refusal if factors["device"] == "gpu" else "a node" in refusal


@pytest.mark.parametrize(
    ("name", "factors"),
    [
        ("llama-3-1-8b", GPU),
        ("llama-3-1-8b", {**CPU, "strategy": "dealt"}),
        ("gemm", CPU),
    ],
)
def test_nothing_is_said_where_nothing_is_known(
    machine: Callable[..., Platform], name: str, factors: Mapping[str, Any]
) -> None:
    box = machine(accelerators=[{"model": "G", "count": 1}])
    dealt = {"dealt": Strategy(divides_state=True)}
    info = dataclasses.replace(framework_info("torch"), strategies=dealt)
    assert state_rules.why_not(plugins.workload(name), info, factors, box, scale=Scale()) is None
