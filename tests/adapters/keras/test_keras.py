"""Train with the Keras adapter through the worker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.study.framework import framework_info
from tests.adapters.interpreter import losses, told, work
from workloads.tinycnn import WORKLOAD


@pytest.mark.framework
@pytest.mark.parametrize(
    ("factors", "policy"), [({}, "float32"), ({"precision": "bf16"}, "mixed_bfloat16")]
)
def test_tinycnn_trains_and_its_loss_falls(
    tmp_path: Path, factors: dict[str, Any], policy: str
) -> None:
    events = work("keras", tmp_path, factors={"batch": 8, **factors})
    assert told(events, "identity")["lowered"] == WORKLOAD.parameters
    assert losses(events)[-1] < losses(events)[0] / 2
    assert told(events, "facts")["facts"]["dtype_policy"] == policy


def test_the_biased_variance_is_a_named_difference() -> None:
    (difference,) = framework_info("keras").differs
    assert difference.tensors == "*/variance"
    assert "biased variance" in difference.why
