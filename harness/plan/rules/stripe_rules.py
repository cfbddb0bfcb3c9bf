"""Rules of stripes: how a cell's files lie on a Lustre file system, and why they cannot."""

from __future__ import annotations

import shutil
from typing import Any

from harness.data.user_data import UserData
from harness.plan.rules.input_rules import content_of
from harness.toml.values import Value

STRIPES = ("stripe_count", "stripe_mb")


def why_not(workload: Any, factors: dict[str, Value], own: UserData | None) -> str | None:
    """Give the reason why a cell's files cannot be striped as asked; None if they can."""
    stated = [name for name in STRIPES if factors[name] is not None]
    if not stated:
        return None
    reads = content_of(workload, factors) is not None
    if factors["checkpoint_every"] is None and (not reads or own is not None):
        return f"{stated[0]} is about files that Bakeoff makes, and this cell has none"
    if shutil.which("lfs") is None:
        return f"{stated[0]} is set with lfs, Lustre's own program, which is not here"
    return None
