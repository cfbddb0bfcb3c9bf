"""Plan a screen of a machine's nodes: short work on each alone, then in pairs around the ring."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from harness.doctor.ceilings import Session
from harness.doctor.layer_study import training_called
from harness.errors import UsageError
from harness.launch.contract import Launcher
from harness.platform.platform import Platform
from harness.stats.odd_ones import FEWEST_MEMBERS
from harness.study.framework import framework_info
from harness.study.matrix import adapter_of
from harness.study.study import built_study
from harness.units import counted

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
    training_called(wanted.train)
    info = framework_info(adapter_of(wanted.framework))
    there = len(launcher.nodes(platform.launcher.settings, os.environ))
    count = wanted.nodes or there
    if not FEWEST_MEMBERS <= count <= there:
        raise UsageError(
            f"{platform.name} has {counted(there, 'node')} at hand. A screen takes "
            f"{FEWEST_MEMBERS} at least: of two that differ nobody can say which is the odd one.\n"
            "    Ask for more (salloc -N 8), or use a launcher that names its hosts."
        )
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
    if strategy is not None and "collective" in info.kinds:
        pair = {"workload": "point-to-point", "strategy": strategy, "nodes": 2}
        whole = {"framework": wanted.framework, "message_bytes": _MESSAGE}
        data["include"] = [{**pair, **whole, "node": number} for number in numbers]
    return Session(NAME, built_study(NAME, data), platform)
