"""The rule of state: what training holds between steps has to fit into memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.platform.platform import Platform
from harness.study.framework import FrameworkInfo
from harness.units import decimal_size
from harness.worker.network.precisions import precision_of
from harness.worker.network.workload import MOMENTS, Checkpointing, Training, clip
from harness.worker.scale import Scale


def why_not(
    workload: Any,
    info: FrameworkInfo,
    factors: Mapping[str, Any],
    platform: Platform,
    *,
    scale: Scale,
) -> str | None:
    """Give the reason why a cell's state cannot fit; None if it might, or memory is unknown."""
    training = workload.training if isinstance(workload, Checkpointing) else workload
    is_divided = info.strategy(factors["strategy"]).divides_state
    if not isinstance(training, Training) or is_divided:
        return None
    on_gpu = factors["device"] == "gpu"
    copies = 1 if on_gpu else scale.ranks_per_node
    there = platform.offers()["gpu_memory" if on_gpu else "memory"]
    needed = copies * least_bytes(training, factors["precision"])
    if there is None or needed <= there:
        return None
    place = "each GPU" if on_gpu else "a node"
    return (
        f"{training.name} needs at least {decimal_size(needed)} of {place}, for its weights "
        f"and what training keeps beside them; {platform.name} has {decimal_size(there)}"
    )


def least_bytes(training: Training, precision: object) -> int:
    """Give the least that one copy of a network takes while it is trained, without activations.

    Gradients count where they are clipped together, as wide as they flow: others may be used up
    one by one.
    """
    kept = precision_of(precision)
    each = kept.held_bytes * (1 + len(MOMENTS[type(training.optimiser)]))
    if clip(training.optimiser) is not None:
        each += kept.activation_bytes
    return training.parameters * each
