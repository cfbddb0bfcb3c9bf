"""Rules of the platform: what a cell needs in each node, and the platform does not have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.platform.hardware import FAST
from harness.platform.platform import Platform
from harness.study.matrix import adapter_of
from harness.study.measure import Measure
from harness.units import size_text
from harness.worker.scale import Scale

_FAST_MEMORY = ("fast-first", "fast-only")


def why_not(
    framework: str,
    factors: Mapping[str, Any],
    *,
    scale: Scale,
    platform: Platform,
    measure: Measure,
) -> str | None:
    """Give what a point needs and the platform lacks; None if there is enough."""
    name, offers = platform.name, platform.offers()
    nodes, ranks, each = scale.nodes, scale.ranks_per_node, scale.devices_per_rank
    available = offers["available_nodes"]
    if available is not None and nodes > available:
        return f"needs {nodes} nodes; {name} has {available}"
    gpus = offers["gpus"]
    if factors["device"] == "gpu" and gpus is not None and ranks * each > gpus:
        wanted = f"{ranks * each} GPUs" if ranks * each > 1 else "a GPU"
        return f"needs {wanted} in each node; {name} has {gpus or 'none'}"
    cpus, threads = offers["cpus"], factors["threads"] or 1
    if cpus and ranks * threads > cpus and not platform.binding.oversubscribe:
        return (
            f"{ranks} ranks of {threads} threads need {ranks * threads} CPUs; {name} has "
            f"{cpus} (its binding.oversubscribe would let them share)"
        )
    memory = offers["memory"]
    if measure.memory_bytes and memory and measure.memory_bytes > memory:
        return (
            f"measure.memory asks for {size_text(measure.memory_bytes)} a node; "
            f"{name} has {size_text(memory)}"
        )
    if factors["memory_policy"] in _FAST_MEMORY and not _has_fast_memory(platform):
        return f"{name} states no fast memory (MCDRAM or HBM) that programs can choose"
    if factors["container"] and not _has_container(platform, framework):
        return f"{name} names no container for {framework}"
    return None


def _has_fast_memory(platform: Platform) -> bool:
    """Tell whether a profile states fast memory beside the slow one, or does not say its mode."""
    return any(one.kind in FAST and one.mode != "cache" for one in platform.node.memory)


def _has_container(platform: Platform, framework: str) -> bool:
    there = platform.frameworks
    entry = there.get(framework) or there.get(adapter_of(framework))
    return entry is not None and entry.container is not None
