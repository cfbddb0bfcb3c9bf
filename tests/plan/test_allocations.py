"""These tests hold the packing of trials into a queue's jobs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.plan.allocations import allocations, blocks_of
from harness.plan.duration import Estimate
from harness.plan.plan import Plan
from harness.platform.platform import Platform

STUDY = """title = "Shapes"
[matrix]
workload = "tinycnn"
framework = "torch"
strategy = "ddp"
nodes = [1, 2, 16]
batch = [8, 16]
threads = 1
[measure]
trials = 3
"""


@pytest.fixture
def plan(planned: Callable[..., Plan], machine: Callable[..., Platform]) -> Plan:
    return planned(STUDY, platform=machine(nodes=16))


def guessed(plan: Plan) -> Estimate:
    trial_s = {cell.key: 100.0 for cell in plan.cells}
    return Estimate(trial_s, 1800.0, 0.0, refined=False, gate_s=0.0, starts_s=0.0, late={})


def owed(plan: Plan) -> dict[str, int]:
    return {cell.key: 3 for cell in plan.cells}


def test_blocks_are_dealt_over_allocations_that_cost_as_much_together(plan: Plan) -> None:
    whole = allocations(plan, guessed(plan), owed(plan))
    dealt = allocations(plan, guessed(plan), owed(plan), parts=2)
    assert [one.parts for one in dealt] == [2, 2, 2]
    assert [one.node_hours for one in dealt] == [one.node_hours for one in whole]
    assert [one.minutes for one in dealt] == [15, 15, 15]
    parts = [blocks_of(plan.order, part, 2) for part in (1, 2)]
    assert not parts[0] & parts[1]
    assert parts[0] | parts[1] == {block for _, block in plan.order}
    assert max(parts[0]) < min(parts[1])


def test_there_are_no_more_allocations_than_blocks(plan: Plan) -> None:
    blocks = {block for _, block in plan.order}
    dealt = allocations(plan, guessed(plan), owed(plan), parts=99)
    assert {one.parts for one in dealt} == {len(blocks)}
    parts = [blocks_of(plan.order, part, len(blocks)) for part in range(1, len(blocks) + 1)]
    assert [len(one) for one in parts] == [1] * len(blocks)


def test_cells_of_one_shape_share_one_allocation(plan: Plan) -> None:
    told = allocations(plan, guessed(plan), owed(plan))
    assert [(one.nodes, len(one.keys), one.trials) for one in told] == [
        (1, 2, 6),
        (2, 2, 6),
        (16, 2, 6),
    ]
    assert [one.minutes for one in told] == [22, 22, 22], "each job has its own cells proved"
    assert sum(one.node_hours for one in told) == pytest.approx(19 * 600 / 3600)


def test_fewer_jobs_join_the_shapes_that_waste_least(plan: Plan) -> None:
    told = allocations(plan, guessed(plan), owed(plan), most=2)
    assert [(one.nodes, len(one.keys)) for one in told] == [(2, 4), (16, 2)]
    (one,) = allocations(plan, guessed(plan), owed(plan), most=1)
    assert (one.nodes, one.trials) == (16, 18)


def test_what_is_done_needs_no_nodes(plan: Plan) -> None:
    waiting = {cell.key: 1 for cell in plan.cells if cell.factors["nodes"] == 16}
    told = allocations(plan, guessed(plan), waiting)
    assert [(one.nodes, one.trials) for one in told] == [(16, 2)]
