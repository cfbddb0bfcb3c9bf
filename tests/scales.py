"""Scales and feeds from the few factors that a test states; Python 3.7, beside frameworks too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.worker.feed import Feed, describe
from harness.worker.input.files import described
from harness.worker.place import Place
from harness.worker.scale import Scale

ONE: Mapping[str, Any] = {
    "nodes": 1,
    "ranks_per_node": 1,
    "devices_per_rank": 1,
    "batch": 1,
    "global_batch": None,
}


def parted(factors: Mapping[str, Any]) -> tuple[Scale, dict[str, Any]]:
    """Part factors as a job holds them: its scale, and the others."""
    told = {name: factors.get(name, one) for name, one in ONE.items()}
    return Scale.of(told), {name: one for name, one in factors.items() if name not in ONE}


def fed(
    workload: Any,
    factors: Mapping[str, Any],
    place: Place,
    folder: str | Path | None = None,
    *,
    meeting: str = "",
) -> Feed:
    """Describe the feed of a rank that reads a folder, or nothing."""
    scale, others = parted({"ranks_per_node": place.size, **factors})
    files = None
    if folder is not None:
        files = described(others, str(folder), 1, place, meeting=meeting)
    return describe(workload, scale, seed=1, place=place, files=files)
