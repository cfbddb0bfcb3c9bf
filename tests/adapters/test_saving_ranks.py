"""Take checkpoints with two ranks of torch, which train on while one is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.worker.job import Job, Span
from harness.worker.scale import Scale
from tests.adapters.two_ranks import run_two

pytestmark = pytest.mark.framework


@pytest.mark.parametrize("saver", ["save", "distributed-async"])
def test_two_ranks_save_and_restore_together(saver: str, tmp_path: Path) -> None:
    job = Job(
        purpose="trial",
        cell_key="k",
        trial="trial-1",
        workload="tinycnn",
        workload_module="workloads.tinycnn",
        framework="torch",
        adapter_module="harness.worker.adapters.torch.adapter",
        environment="torch",
        strategy="ddp",
        scale=Scale(ranks_per_node=2, batch_per_device=4),
        factors={"checkpoint_every": 10, "precision": "fp32", "threads": 1},
        options={"saver": saver},
        warmup=Span(steps=5),
        until=Span(steps=20),
        seed=1,
        directory=str(tmp_path),
        paths={"checkpoint_to": f"{tmp_path}/slow", "checkpoint_through": f"{tmp_path}/fast"},
    )
    assert run_two(job, tmp_path) == [0, 0]
    for number, is_same in ((0, True), (1, None)):  # the first rank's state is the one that is kept
        said = (tmp_path / f"events.{number}.jsonl").read_text("utf-8").splitlines()
        (proof,) = [event for line in said if (event := json.loads(line))["event"] == "restored"]
        assert (proof["step"], proof["files_true"], proof["state_true"]) == (25, True, is_same)
