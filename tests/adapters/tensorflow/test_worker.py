"""Run the TensorFlow adapter through the worker: training, compiling, probing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from harness.machine.machine import read_machine
from tests.adapters.interpreter import losses, told, work
from workloads.tinycnn import WORKLOAD

pytestmark = pytest.mark.framework


@pytest.mark.parametrize(
    ("environment", "factors"),
    [
        ("tensorflow", {}),
        ("tensorflow", {"precision": "bf16", "threads": 1}),
        ("tensorflow", {"compile": True}),
        ("tensorflow", {"onednn": False, "deterministic": True}),
        ("tensorflow@1.15", {}),
    ],
    ids=["fp32", "bf16", "xla", "plain-deterministic", "1.15"],
)
def test_tinycnn_trains_and_its_loss_falls(
    tmp_path: Path, environment: str, factors: dict[str, Any]
) -> None:
    events = work(environment, tmp_path, factors={"batch": 8, **factors})
    assert told(events, "finished")
    assert told(events, "identity")["lowered"] == WORKLOAD.parameters
    assert told(events, "units")["units"] == {"images": 8}
    assert losses(events)[-1] < losses(events)[0] / 2
    facts = told(events, "facts")["facts"]
    assert facts["threads"] == factors.get("threads", len(os.sched_getaffinity(0)))
    assert facts["multiplications"]["counted"] == facts["multiplications"]["asked"] > 0


@pytest.mark.long
def test_devices_of_one_rank_train_each_on_its_part_of_the_batch(tmp_path: Path) -> None:
    factors = {"batch": 8, "devices_per_rank": 2}
    events = work("tensorflow", tmp_path, strategy="mirrored", factors=factors)
    assert told(events, "finished")
    assert losses(events)[-1] < losses(events)[0] / 2


@pytest.mark.parametrize(
    ("environment", "factors", "why"),
    [
        ("tensorflow", {"precision": "fp16"}, "TensorFlow trains in fp16 on GPUs only"),
        ("tensorflow@1.15", {"precision": "bf16"}, "TensorFlow 1.15 has no bfloat16"),
        ("tensorflow@1.15", {"onednn": True}, "without oneDNN"),
    ],
)
def test_what_this_tensorflow_cannot_do_is_an_honest_hole(
    tmp_path: Path, environment: str, factors: dict[str, Any], why: str
) -> None:
    failed = told(work(environment, tmp_path, factors={"batch": 8, **factors}), "failed")
    assert failed["kind"] == "unsupported"
    assert why in failed["message"]


def test_a_probe_says_which_kernels_and_types_ran(tmp_path: Path) -> None:
    factors = {"batch": 8, "precision": "bf16"}
    events = work("tensorflow", tmp_path, purpose="probe", factors=factors)
    facts = told(events, "facts")["facts"]
    assert facts["operations"]["Conv2D bfloat16"] == 4
    assert facts["operations"]["FusedBatchNormV3 bfloat16"] == 3
    assert facts["busy_threads"] >= 1
    if "avx512f" in read_machine().capabilities and facts["onednn_isa"] is not None:  # else off
        assert any(name.startswith("convolution") for name in facts["onednn_primitives"])
