"""Steps of two ranks are divided, and what they exchange is told from what they compute."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.worker.job import Job, Span
from harness.worker.scale import Scale
from tests.adapters.interpreter import told
from tests.adapters.two_ranks import run_two

pytestmark = pytest.mark.framework

WAYS = [
    ("torch", "ddp", True),
    ("torch", "ddp", False),
    ("jax", "data-parallel", True),
]


@pytest.mark.parametrize(("framework", "strategy", "communicates"), WAYS)
def test_the_first_of_two_ranks_says_what_exchange_takes(
    framework: str, strategy: str, communicates: bool, tmp_path: Path
) -> None:
    job = Job(
        purpose="attribute",
        cell_key="k",
        trial="attribution",
        workload="tinycnn",
        workload_module="workloads.tinycnn",
        framework=framework,
        adapter_module=f"harness.worker.adapters.{framework}.adapter",
        environment=framework,
        strategy=strategy,
        scale=Scale(ranks_per_node=2, batch_per_device=16),
        factors={"precision": "fp32", "threads": 1, "communicate": communicates},
        options={},
        warmup=Span(steps=1),
        until=Span(steps=1),
        seed=1,
        directory=str(tmp_path),
    )
    assert run_two(job, tmp_path) == [0, 0], (tmp_path / "printed.0").read_text("utf-8")
    first, second = (_events(tmp_path, number) for number in range(2))
    assert told(second, "finished")
    assert not [one for one in second if one["event"] in ("attribution", "part")]
    parts = {(one["site"], one["phase"]): one for one in first if one["event"] == "part"}
    assert all(parts["conv1", phase] for phase in ("forward", "backward"))
    assert (("", "exchange") in parts) == communicates
    if communicates:
        assert sum(parts["", "exchange"]["shares"]) > 0
        assert parts["", "exchange"]["operations"]


def _events(folder: Path, rank: int) -> list[dict[str, object]]:
    lines = (folder / f"events.{rank}.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]
