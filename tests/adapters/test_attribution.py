"""Steps of real frameworks are divided among the network's layers, and hardly anything is left."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import pytest

from harness.worker.network.layers import Conv, Dense
from harness.worker.network.shapes import sites
from tests.adapters.interpreter import told, work
from workloads.tinycnn import WORKLOAD

pytestmark = pytest.mark.framework

HEAVY = [one.path for one in sites(WORKLOAD.network) if isinstance(one.layer, Conv | Dense)]
FACTORS = {"batch": 16, "device": "cpu", "precision": "fp32", "threads": 1}


def parts(framework: str, directory: Path, **factors: Any) -> dict[tuple[str, str], float]:
    """Attribute a step of tinycnn; give the median share of each layer and phase."""
    events = work(framework, directory, purpose="attribute", factors={**FACTORS, **factors})
    assert told(events, "finished")
    said = [one for one in events if one["event"] == "part"]
    assert len(told(events, "attribution")["step_s"]) == len(said[0]["shares"]) >= 5
    for number in range(len(said[0]["shares"])):
        assert sum(one["shares"][number] for one in said) == pytest.approx(1, abs=1e-3)
    assert all(one["operations"] for one in said if one["phase"] in ("forward", "backward"))
    return {(one["site"], one["phase"]): median(one["shares"]) for one in said}


@pytest.mark.parametrize(
    ("framework", "factors"),
    [
        ("torch", {}),
        ("torch", {"precision": "bf16"}),
        ("jax", {}),
        ("tensorflow", {}),
        ("tensorflow", {"compile": True}),
    ],
)
def test_every_layer_that_multiplies_has_its_parts_and_little_is_unmarked(
    framework: str, factors: dict[str, Any], tmp_path: Path
) -> None:
    found = parts(framework, tmp_path, **factors)
    for path in HEAVY:
        assert found[path, "forward"] > 0
        assert found[path, "backward"] > 0
    assert found["", "update"] > 0
    assert found.get(("", "other"), 0) < 0.02
