"""This file names what a cell does in a step, so that only like is compared with like.

That is its workload; where reading is the work, also what stands for a model beside it: whoever
computes for 100 ms a batch is no slower reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def task(workload: str, factors: Mapping[str, Any]) -> str:
    """Name a cell's work: ``read-pictures``, ``read-pictures + 100 ms burn``."""
    stand_in = factors.get("compute") or "none"
    if stand_in == "none":
        return workload
    return f"{workload} + {factors.get('compute_ms') or 0:g} ms {stand_in}"
