"""Rules of messages: how large a cell's messages are, and why it cannot exchange them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.toml.values import Value
from harness.worker.collective import FLOAT_BYTES
from harness.worker.network.workload import Collective
from harness.worker.scale import Scale


def complete(workload: Any, factors: dict[str, Value]) -> None:
    """Complete the size of a message where the study leaves it open."""
    if isinstance(workload, Collective) and factors["message_bytes"] is None:
        factors["message_bytes"] = workload.message_bytes


def why_not(workload: Any, factors: Mapping[str, Any], scale: Scale) -> str | None:
    """Give the reason why a cell cannot exchange its messages as asked; None if it can."""
    size = factors["message_bytes"]
    if not isinstance(workload, Collective):
        if size is None:
            return None
        return f"message_bytes is about collectives, and {workload.name} is none"
    if scale.ranks < 2:
        return f"{workload.name} needs two ranks or more"
    if factors.get("communicate") is False:
        return f"{workload.name} without exchange is nothing at all"
    if workload.operation == "all-reduce" and size % FLOAT_BYTES:
        return f"{size} bytes are no whole number of float32, which all-reduce adds up"
    if workload.operation == "all-gather" and size % scale.ranks:
        return f"{size} bytes do not divide among {scale.ranks} ranks"
    return None
