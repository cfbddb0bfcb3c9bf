"""Train with the Keras adapter through the worker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.study.framework import framework_info
from tests.adapters.interpreter import losses, python, told, work, work_with
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


@pytest.mark.framework
def test_what_a_user_has_told_keras_once_for_all_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told_keras = {"floatx": "float16", "epsilon": 1e-3, "image_data_format": "channels_first"}
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("KERAS_HOME", str(home))
    without = losses(work("keras", tmp_path / "without", factors={"batch": 8}))
    (home / "keras.json").write_text(json.dumps({"backend": "tensorflow", **told_keras}))
    events = work("keras", tmp_path / "with", factors={"batch": 8})
    assert told(events, "finished")
    assert losses(events)[:10] == pytest.approx(without[:10], rel=1e-3)


def test_the_biased_variance_is_a_named_difference() -> None:
    (difference,) = framework_info("keras").differs
    assert difference.tensors == "*/variance"
    assert "biased variance" in difference.why


@pytest.mark.long
@pytest.mark.framework
@pytest.mark.parametrize(
    ("environment", "compiled"), [("keras", False), ("keras@jax", True), ("keras@torch", False)]
)
def test_each_backend_trains_to_the_same_losses_and_says_which_it_is(
    tmp_path: Path, environment: str, compiled: bool
) -> None:
    given: dict[str, Any] = {"factors": {"batch": 8, "compile": compiled}}
    program = python(environment)
    events = work_with(program, "keras", tmp_path, environment=environment, **given)
    facts = told(events, "facts")["facts"]
    assert facts["backend"] == (environment.partition("@")[2] or "tensorflow")
    assert told(events, "identity")["lowered"] == WORKLOAD.parameters
    assert losses(events)[-1] < losses(events)[0] / 2
    counted = facts["multiplications"]
    assert counted["counted"] == pytest.approx(counted["asked"], rel=0.03)


def test_what_a_backend_lacks_is_a_hole_of_its_environment_alone() -> None:
    def why(framework: str, **factors: Any) -> list[str]:
        known = {"framework": framework, "compile": False, "input": "synthetic", **factors}
        requires = framework_info("keras").requires
        return [reason for one in requires if (reason := one.fails(known)) is not None]

    assert why("keras") == why("keras", compile=True) == why("keras", input="files") == []
    assert why("keras@jax") == ["on JAX Keras' step is compiled: compile = true"]
    assert why("keras@torch", compile=True) == [
        "on torch Keras' step is not compiled: compile = false"
    ]
    assert why("keras@torch", input="files") == [
        "this adapter reads files for Keras on TensorFlow only"
    ]
