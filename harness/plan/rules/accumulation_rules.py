"""Rules of accumulated gradients: what batch divides, and where the update would be another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.study.framework import FrameworkInfo
from harness.worker.network.shapes import couples_samples
from harness.worker.network.workload import Training
from harness.worker.scale import Scale


def why_not(
    workload: Any, info: FrameworkInfo, factors: Mapping[str, Any], scale: Scale
) -> str | None:
    """Give the reason why a step cannot be made of so many micro-batches; None if it can.

    The update has to be that of one batch, which a batch norm's statistics would make another.
    """
    count = factors["accumulate"]
    if count == 1:
        return None
    if not isinstance(workload, Training):
        return f"accumulate is about training a network, and {workload.name} is something else"
    if couples_samples(workload.network):
        return (
            f"{workload.name} has batch norms, which would normalise each micro-batch by itself: "
            "accumulated gradients are not those of one batch"
        )
    batch = scale.batch_per_device
    if batch % count:
        possible = ", ".join(str(one) for one in range(1, batch + 1) if batch % one == 0)
        return (
            f"a batch of {batch} samples does not divide into {count} micro-batches "
            f"(accumulate can be: {possible})"
        )
    if scale.devices > 1 and not info.strategy(factors["strategy"]).accumulates:
        able = [name for name, one in info.strategies.items() if one.accumulates]
        places = " or with ".join(["on one device", *able])
        return (
            f"{info.name} accumulates gradients {places}: with {factors['strategy']} they are "
            "exchanged with each micro-batch, and nobody has written it otherwise"
        )
    return None
