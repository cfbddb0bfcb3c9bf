"""Steps of real frameworks are divided among the network's layers, and hardly anything is left."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from harness.worker.attribution.traced_steps import MOST_OPERATIONS
from harness.worker.network.layers import Conv, Dense
from harness.worker.network.shapes import sites
from tests.adapters.interpreter import forked, told, work
from tests.forked_workers import Workers
from workloads.tinycnn import WORKLOAD

pytestmark = pytest.mark.framework

HEAVY = [one.path for one in sites(WORKLOAD.network) if isinstance(one.layer, Conv | Dense)]
FUSED = {"conv2": "relu2"}
"""What TensorFlow computes in one operation belongs to the last of them."""
FACTORS = {"batch": 16, "device": "cpu", "precision": "fp32", "threads": 1}


def parts(
    workers: Workers, framework: str, directory: Path, **factors: Any
) -> dict[tuple[str, str], float]:
    """Attribute a step of tinycnn; give the median share of each layer and phase."""
    is_alone = framework == "tensorflow@1.15" or factors.get("compile")
    run = work if is_alone else partial(forked, workers)
    events = run(framework, directory, purpose="attribute", factors={**FACTORS, **factors})
    assert told(events, "finished")
    said = [one for one in events if one["event"] == "part"]
    head = told(events, "attribution")
    assert len(head["step_s"]) == len(said[0]["shares"]) >= 5
    assert len(head["untraced_s"]) >= 5
    kept = json.loads((directory / "traced.json").read_text())
    lasting = {kind for step in kept["steps"] for kind, _, length in step["operations"] if length}
    assert {tuple(kept["kinds"][kind][:2]) for kind in lasting} <= {
        (one["site"], one["phase"]) for one in said
    }
    assert 0 < sum(len(one["operations"]) for one in kept["steps"]) <= MOST_OPERATIONS
    assert all(one["left_out"] == 0 for one in kept["steps"])
    for number in range(len(said[0]["shares"])):
        assert sum(one["shares"][number] for one in said) == pytest.approx(1, abs=1e-3)
    assert all(one["operations"] for one in said if one["phase"] in ("forward", "backward"))
    return {(one["site"], one["phase"]): median(one["shares"]) for one in said}


@pytest.mark.parametrize(
    ("framework", "factors"),
    [
        ("torch", {}),
        ("torch", {"precision": "bf16"}),
        ("torch", {"compile": True}),
        ("jax", {}),
        ("tensorflow", {}),
        ("tensorflow", {"compile": True}),
        ("tensorflow@1.15", {}),
        ("keras", {}),
        ("tinygrad", {"compile": True}),
    ],
)
def test_every_layer_that_multiplies_has_its_parts_and_little_is_unmarked(
    framework: str, factors: dict[str, Any], workers: Workers, tmp_path: Path
) -> None:
    found = parts(workers, framework, tmp_path, **factors)
    for path in HEAVY:
        fused = FUSED.get(path, path)
        assert max(found.get((one, "forward"), 0) for one in (path, fused)) > 0
        assert found[path, "backward"] > 0
    assert found["", "update"] > 0
    assert found.get(("", "other"), 0) < 0.02
