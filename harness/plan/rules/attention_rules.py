"""Rules of attention: how a cell computes it where nobody says, and why it cannot be asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness import plugins
from harness.study.framework import FrameworkInfo
from harness.toml.values import Value
from harness.worker.network.alone import network_name
from harness.worker.network.asked_workload import has_attention


def complete(name: str, info: FrameworkInfo, factors: dict[str, Value]) -> None:
    """Complete how attention is computed: as the adapter does by itself, where it says so."""
    if factors["attention"] is None and _has_any(name):
        factors["attention"] = _own(info)


def in_key(info: FrameworkInfo, factors: Mapping[str, Value]) -> Mapping[str, Value]:
    """Give factors as a cell's key has them: it says nothing of what the adapter does anyway."""
    if factors["attention"] != _own(info):
        return factors
    return {**factors, "attention": None}


def why_not(name: str, factors: Mapping[str, Any]) -> str | None:
    """Give the reason why a cell's attention cannot be chosen; None if it can, or nobody did."""
    if factors["attention"] is None or _has_any(name):
        return None
    return f"{network_name(name)} has no attention: attention says something of transformers"


def _own(info: FrameworkInfo) -> Value:
    """Give what comes first of what an adapter offers."""
    return (info.factors.get("attention") or (None,))[0]


def _has_any(name: str) -> bool:
    return has_attention(plugins.workload(network_name(name)))
