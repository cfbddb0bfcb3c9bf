"""The rule of recomputed blocks: a network has to have some."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.worker.network.blocks import has_blocks
from harness.worker.network.workload import Training


def why_not(workload: Any, factors: Mapping[str, Any]) -> str | None:
    """Give the reason why a step cannot compute blocks twice; None if it can, or nobody asked."""
    if not factors["recompute"]:
        return None
    if not isinstance(workload, Training):
        return f"recompute is about training a network, and {workload.name} is something else"
    if not has_blocks(workload.network):
        return (
            f"{workload.name} has no blocks to be computed twice: recompute is for networks of "
            "residuals, as ResNet and transformers are"
        )
    return None
