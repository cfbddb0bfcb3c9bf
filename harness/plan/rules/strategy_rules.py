"""Rules of strategies: how many ranks and devices each one can use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.study.framework import FrameworkInfo
from harness.worker.scale import Scale


def why_not(
    info: FrameworkInfo, factors: Mapping[str, Any], *, scale: Scale, kind: str
) -> str | None:
    """Give the reason why a strategy does not fit so many ranks and devices; None if it does."""
    strategy = factors["strategy"]
    if kind == "layer" and scale.devices > 1:
        return "a layer is timed alone, on one device"
    if strategy == "none" and scale.ranks > 1 and kind != "read":
        return f"{scale.ranks} ranks need a strategy, and this cell has none"
    if scale.devices_per_rank > 1 and not info.strategy(strategy).several_devices:
        return _one_device(info, strategy, scale.devices_per_rank)
    if factors["communicate"] is False and scale.devices == 1:
        return "one rank exchanges nothing: communicate says something of several"
    if factors["peer"] is False:
        return _no_peer(info, strategy, str(factors["device"]), scale)
    return None


def _no_peer(info: FrameworkInfo, strategy: str, device: str, scale: Scale) -> str | None:
    """Give the reason why devices of a node cannot be kept from exchanging directly."""
    if scale.ranks_per_node * scale.devices_per_rank == 1:
        return "one device of a node has no peer there: peer says something of several"
    if device not in info.strategy(strategy).without_peer:
        return f"{strategy} of {info.name} has no other way between {device.upper()}s of a node"
    return None


def _one_device(info: FrameworkInfo, strategy: str, each: int) -> str:
    """Give the reason why a rank cannot drive so many devices: most strategies use only one."""
    able = " or ".join(name for name, one in info.strategies.items() if one.several_devices)
    able = f"{able} only, not {strategy}" if able else "no strategy"
    return f"a rank of {info.name} drives {each} devices with {able}"
