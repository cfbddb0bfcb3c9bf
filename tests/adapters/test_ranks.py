from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from typing import Any

import pytest

from harness.launch.launch import Node
from harness.launch.meeting import seats, variables
from harness.run.offer import free_ports
from tests.adapters.interpreter import ROOT, python
from tests.needs import compiled

pytestmark = [pytest.mark.framework, pytest.mark.timeout(300)]

STRATEGIES = (
    ("torch", "ddp", "torch"),
    ("torch", "horovod", "torch@horovod"),
    ("tensorflow", "multiworker", "tensorflow"),
    ("tensorflow", "horovod", "tensorflow@horovod"),
    ("jax", "data-parallel", "jax"),
)


@cache
def trained(environment: str, framework: str, strategy: str, size: int) -> list[dict[str, Any]]:
    """Train on several ranks and give what each says."""
    nodes = (Node((0,), free_ports(size + 1, "127.0.0.1")),)
    ranks = [
        subprocess.Popen(
            [python(environment), "-m", "tests.adapters.ranks_inside", framework, strategy],
            cwd=ROOT,
            env={
                **os.environ,
                **variables(seat, nodes, size, has_mpi=False),
                "PYTHONPATH": str(ROOT),
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        for seat in seats(1, size)
    ]
    said = [rank.communicate(timeout=280)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * size
    return [json.loads(one.strip().splitlines()[-1]) for one in said]


@pytest.mark.parametrize(("framework", "strategy", "environment"), STRATEGIES)
def test_two_ranks_with_half_the_batch_each_equal_one_rank_with_all_of_it(
    framework: str, strategy: str, environment: str
):
    if strategy == "horovod":
        compiled(environment)
    (alone,) = trained(framework, framework, "none", 1)
    first, second = trained(environment, framework, strategy, 2)
    assert first["weights"] == second["weights"], "ranks drifted apart"
    assert (first["largest"], second["largest"]) == (1.0, 1.0)
    for name, expected in alone["weights"].items():
        largest = max(abs(value) for value in expected) or 1.0
        error = max(abs(a - b) for a, b in zip(first["weights"][name], expected, strict=True))
        assert error <= 1e-12 * largest, name
