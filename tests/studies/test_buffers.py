"""A plan say how much memory asynchronous readers take, or why it is too much."""

from __future__ import annotations

from harness.plan.plan import make_plan
from harness.platform.platform import load_platform
from harness.study.study import load_study


def test_the_memory_of_buffers_is_said_beforehand() -> None:
    plan = make_plan(load_study("lee2021", size="smoke"), load_platform())
    # 16 volumes of 12 × 128³ 16-bit numbers
    assert "Buffers of asynchronous readers take up to 805 MB of a node." in plan.notes


def test_what_would_take_more_than_half_of_a_node_is_left_out_with_the_figure() -> None:
    overrides = ["matrix.buffer_samples=10_000_000", "zip=[{reader = ['pread', 'async-thread']}]"]
    overrides += ["matrix.workload='neuron-inverter'"]
    plan = make_plan(load_study("lee2021", size="smoke", overrides=overrides), load_platform())
    (why,) = {hole.why for hole in plan.holes if "2 nodes" not in hole.why}
    assert why.startswith("its buffers would hold 256 GB of a node's ")
