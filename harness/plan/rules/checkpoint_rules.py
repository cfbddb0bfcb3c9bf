"""Rules of checkpoints: how often and to which tiers a cell saves, and why it cannot."""

from __future__ import annotations

from typing import Any

from harness.platform.platform import Platform
from harness.toml.values import Value
from harness.worker.network.workload import Checkpointing

TIERS = ("checkpoint_to", "checkpoint_through")


def complete(workload: Any, factors: dict[str, Value]) -> None:
    """Complete the factors of checkpoints: where saving is the work, save at every step."""
    if isinstance(workload, Checkpointing) and factors["checkpoint_every"] is None:
        factors["checkpoint_every"] = 1


def why_not(workload: Any, factors: dict[str, Value], platform: Platform) -> str | None:
    """Give the reason why a cell cannot save its checkpoints as asked; None if it can."""
    stated = [name for name in TIERS if factors[name] is not None]
    if factors["checkpoint_every"] is None:
        if stated:
            return f"{stated[0]} says where, and nothing how often: checkpoint_every"
        return None
    if workload.kind not in ("train", "checkpoint"):
        return f"a workload of kind {workload.kind} has no state to save"
    for name in stated:
        if factors[name] not in platform.storage:
            has = ", ".join(platform.storage) or "none"
            return f"{platform.name} has no storage tier '{factors[name]}' (it has: {has})"
    if len(stated) == len(TIERS) and len({factors[name] for name in stated}) == 1:
        return "a checkpoint through the tier that it stays on is one straight to it"
    return None
