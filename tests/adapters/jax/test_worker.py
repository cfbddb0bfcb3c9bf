"""Run the JAX adapter through the worker: training and probing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.worker.facts.resources import usable_cpus
from harness.worker.network.shapes import macs_of_step
from tests.adapters.interpreter import losses, told, work
from workloads.tinycnn import WORKLOAD

pytestmark = pytest.mark.framework


@pytest.mark.parametrize(
    "factors",
    [{}, {"precision": "bf16"}, {"layout": "channels-first", "threads": 1}],
    ids=["fp32", "bf16", "channels-first"],
)
def test_tinycnn_trains_and_its_loss_falls(tmp_path: Path, factors: dict[str, Any]) -> None:
    events = work("jax", tmp_path, factors={"batch": 8, **factors})
    assert told(events, "finished")
    assert told(events, "identity")["lowered"] == WORKLOAD.parameters
    assert told(events, "units")["units"] == {"images": 8}
    assert losses(events)[-1] < losses(events)[0] / 2
    facts = told(events, "facts")["facts"]
    assert facts["compiler"] == "xla"
    assert facts["compile_s"] > 0
    asked = 8 * macs_of_step(WORKLOAD.network)
    by = "XLA's compiled step"
    assert facts["multiplications"] == {"counted": asked, "asked": asked, "by": by}


@pytest.mark.parametrize("asked", [{"threads": 1}, {}], ids=["one thread", "all"])
def test_its_pool_is_as_large_as_was_asked_whatever_the_users_variables(
    tmp_path: Path, monkeypatch, asked: dict[str, int]
) -> None:
    sizes = dict.fromkeys(("NPROC", "PJRT_NPROC"), str(asked.get("threads", usable_cpus())))
    for name in sizes:
        monkeypatch.setenv(name, "3")
    told_of = {"take": [*sizes], "leave": []}
    events = work("jax", tmp_path, factors={"batch": 4, **asked}, variables=told_of)
    assert told(events, "facts")["facts"]["variables"] == sizes


def test_a_probe_lists_the_heavy_operations_by_their_type(tmp_path: Path) -> None:
    events = work("jax", tmp_path, purpose="probe", factors={"batch": 4, "precision": "bf16"})
    facts = told(events, "facts")["facts"]
    assert any(name.startswith("convolution") for name in facts["operations"])
    assert facts["computed"]
    assert facts["compile_s"] > 0
    assert told(events, "finished")


def test_a_precision_that_a_cpu_has_not_is_unsupported(tmp_path: Path) -> None:
    events = work("jax", tmp_path, factors={"batch": 4, "precision": "fp16"})
    assert told(events, "failed")["kind"] == "unsupported"
