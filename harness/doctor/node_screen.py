"""Plan a screen of a machine's nodes: short work on each alone, then in pairs around the ring."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from harness.doctor.ceilings import Session
from harness.errors import UsageError
from harness.launch.contract import Launcher
from harness.platform.platform import Platform
from harness.study.framework import framework_info
from harness.study.matrix import adapter_of
from harness.study.study import built_study

NAME = "screen"
_KERNELS = ("gemm", "triad")
_MESSAGE = 2**24


@dataclass(frozen=True)
class Wanted:
    """What nodes are screened with."""

    framework: str
    train: str
    """The network whose training steps are taken, and whose losses are compared."""
    nodes: int | None
    blocks: int
    until: str


def session(wanted: Wanted, platform: Platform, launcher: Launcher) -> Session:
    """Plan the trials: each node alone with each work, each node with the next one."""
    count = wanted.nodes or len(launcher.nodes(platform.launcher.settings, os.environ))
    if count < 2:
        raise UsageError(
            f"{platform.name} has one node at hand, which can be held to no other.\n"
            "    Ask for several (salloc -N 8), or use a launcher that names its hosts."
        )
    info = framework_info(adapter_of(wanted.framework))
    kernels = list(_KERNELS) if "ceiling" in info.kinds else []
    numbers = list(range(1, count + 1))
    alone: dict[str, Any] = {"framework": wanted.framework, "node": numbers}
    if info.refuses("deterministic", True) is None:
        alone["deterministic"] = True  # else equal nodes may differ in a last bit
    data: dict[str, Any] = {
        "title": f"Screen of {count} nodes",
        "question": "Which nodes differ from the others?",
        "matrix": {"workload": [wanted.train, *kernels], **alone},
        "measure": {
            "trials": wanted.blocks,
            "warmup": "3 steps",
            "until": wanted.until,
            "timeout": "5 min",
            "turns": False,
            "tolerate": ["contended", "throttled", "stalled"],
        },
    }
    strategy = next(iter(info.strategies), None)
    if strategy is not None and "collective" in info.kinds and count > 2:
        pair = {"workload": "point-to-point", "strategy": strategy, "nodes": 2}
        whole = {"framework": wanted.framework, "message_bytes": _MESSAGE}
        data["include"] = [{**pair, **whole, "node": number} for number in numbers]
    return Session(NAME, built_study(NAME, data), platform)
