"""The arithmetic of a scale."""

from __future__ import annotations

from typing import Any

import pytest

from harness.study.factors import FACTORS as VOCABULARY
from harness.worker.scale import FACTORS, Scale

DEFAULTS: dict[str, Any] = {name: VOCABULARY[name].default for name in FACTORS}
SHAPE = {**DEFAULTS, "nodes": 2, "ranks_per_node": 3, "devices_per_rank": 4}


def test_a_batch_counts_for_each_device() -> None:
    scale = Scale.of({**SHAPE, "batch": 5})
    assert (scale.ranks, scale.devices) == (6, 24)
    assert (scale.batch_per_device, scale.batch_per_rank, scale.batch_per_step) == (5, 20, 120)
    assert not scale.is_strong


def test_a_global_batch_is_shared_by_all_devices() -> None:
    scale = Scale.of({**SHAPE, "global_batch": 48})
    assert (scale.batch_per_device, scale.batch_per_rank, scale.batch_per_step) == (2, 8, 48)
    assert scale.is_strong


def test_a_global_batch_that_does_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="a global batch of 50 does not divide among 24 devices"):
        Scale.of({**SHAPE, "global_batch": 50})


def test_what_nobody_stated_is_one_device() -> None:
    assert Scale.of(DEFAULTS) == Scale(batch_per_device=32)
