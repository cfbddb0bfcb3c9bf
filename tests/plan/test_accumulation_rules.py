from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from harness import plugins
from harness.plan.rules import accumulation_rules
from harness.study.framework import framework_info
from harness.study.framework_file import Strategy
from harness.worker.scale import Scale


@pytest.mark.parametrize(
    ("workload", "factors", "scale", "why"),
    [
        ("tinygpt", {"accumulate": 4}, Scale(batch_per_device=8), None),
        ("tinycnn", {"accumulate": 1}, Scale(batch_per_device=8), None),
        (
            *("tinygpt", {"accumulate": 4}, Scale(batch_per_device=6)),
            (
                "a batch of 6 samples does not divide into 4 micro-batches "
                "(accumulate can be: 1, 2, 3, 6)"
            ),
        ),
        (
            *("tinycnn", {"accumulate": 2}, Scale(batch_per_device=8)),
            (
                "tinycnn has batch norms, which would normalise each micro-batch by itself: "
                "accumulated gradients are not those of one batch"
            ),
        ),
        (
            *("gemm", {"accumulate": 2}, Scale(batch_per_device=8)),
            "accumulate is about training a network, and gemm is something else",
        ),
        (
            *("tinygpt", {"accumulate": 2, "strategy": "ddp"}),
            *(Scale(ranks_per_node=2, batch_per_device=8), None),
        ),
        (
            *("tinygpt", {"accumulate": 2, "strategy": "horovod"}),
            Scale(ranks_per_node=2, batch_per_device=8),
            (
                "torch accumulates gradients on one device or with ddp: with horovod they are "
                "exchanged with each micro-batch, and nobody has written it otherwise"
            ),
        ),
    ],
)
def test_micro_batches_that_do_not_make_the_step_of_one_batch_are_a_hole(
    workload: str, factors: Mapping[str, Any], scale: Scale, why: str | None
) -> None:
    asked = {"strategy": "none", **factors}
    able = {"ddp": Strategy(accumulates=True), "horovod": Strategy()}
    info = dataclasses.replace(framework_info("torch"), strategies=able)
    assert accumulation_rules.why_not(plugins.workload(workload), info, asked, scale) == why
