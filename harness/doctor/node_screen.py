"""Plan a screen of a machine's nodes: short work on each alone, in pairs, then all together."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.doctor.ceilings import Session
from harness.doctor.layer_study import distinct, training_called
from harness.errors import UsageError, nearest
from harness.launch.contract import Launcher
from harness.platform.platform import Platform
from harness.stats.odd_ones import FEWEST_MEMBERS
from harness.study.framework import ALONE, FrameworkInfo, framework_info
from harness.study.matrix import adapter_of
from harness.study.study import built_study
from harness.units import counted, listed
from harness.worker.network.alone import name_of
from harness.worker.network.workload import Training

NAME = "screen"
_KERNELS = {"compute": "gemm", "memory": "triad"}
_DISK = "storage-write"
MEASURES = ("train", "layer", *_KERNELS, "disk", "pairs", "together")
"""What can be asked for of a screen."""
_MESSAGE = 2**24
_BATCH = 32


@dataclass(frozen=True)
class Wanted:
    """What nodes are screened with."""

    framework: str
    train: str
    """The network whose training steps are taken, and whose losses are compared."""
    nodes: int | None
    blocks: int
    until: str
    measures: tuple[str, ...] = ()
    """Of MEASURES; empty: all that the framework can do."""
    device: str | None = None
    """Where it computes; None: on GPUs, where the platform and the framework have them."""


def session(wanted: Wanted, platform: Platform, launcher: Launcher) -> Session:
    """Plan the trials: each node alone with each work, each with the next one, all together."""
    network = training_called(wanted.train)
    _require_known(wanted.measures)
    info = framework_info(adapter_of(wanted.framework))
    there = len(launcher.nodes(platform.launcher.settings, os.environ))
    count = wanted.nodes or there
    if not FEWEST_MEMBERS <= count <= there:
        raise UsageError(
            f"{platform.name} has {counted(there, 'node')} at hand. A screen takes "
            f"{FEWEST_MEMBERS} at least: of two that differ nobody can say which is the odd one.\n"
            "    Ask for more (salloc -N 8), or use a launcher that names its hosts."
        )
    numbers = list(range(1, count + 1))
    device = _device(wanted, info, platform)
    own: dict[str, Any] = {"framework": wanted.framework, "node": numbers, "device": device}
    able = "ceiling" in info.kinds
    strategy = next((one for one in info.strategies if one != ALONE), None)
    # A rank for each GPU: what only the first one did would clear seven that nobody looked at.
    each = (platform.offers()["gpus"] or 1) if device == "gpu" and strategy else 1
    whole = {"ranks_per_node": each, **({"strategy": strategy} if each > 1 else {})}
    possible = [
        *(["train"] if "train" in info.kinds else []),
        *(["layer"] if "layer" in info.kinds and each == 1 else []),  # one is timed on one device
        *(_KERNELS if able else ()),
        *(["disk"] if able and platform.storage else []),
        *(["pairs", "together"] if strategy and "collective" in info.kinds else []),
    ]
    _require_possible(wanted, platform, possible)
    asked = [one for one in wanted.measures or MEASURES if one in possible]
    train = [wanted.train] if "train" in asked else []
    train += [_heaviest(network)] if "layer" in asked else []
    kernels = [work for name, work in _KERNELS.items() if name in asked]
    cells: list[dict[str, Any]] = []
    alone = {**own, **whole}
    if info.refuses("deterministic", True) is None:
        alone["deterministic"] = True  # else equal nodes may differ in a last bit
    if device == "gpu" and info.refuses("precision", "bf16") is None:
        # Training is in fp32: so tensor cores have their turn as well as the others.
        cells += [{**alone, "workload": train}] if train else []
        cells += [{**alone, "workload": kernels, "precision": "bf16"}] if kernels else []
    elif train or kernels:
        cells.append({**alone, "workload": [*train, *kernels]})
    if "disk" in asked:
        cells.append({**own, "device": "cpu", "workload": _DISK, "tier": list(platform.storage)})
    sent = {**own, "strategy": strategy, "message_bytes": _MESSAGE}
    if "pairs" in asked:
        cells.append({**sent, "workload": "point-to-point", "nodes": 2})
    if "together" in asked:
        all_of = {"workload": "all-reduce", "nodes": count, "node": 1, "ranks_per_node": each}
        cells.append({**sent, **all_of})
    has_one_tier = "disk" not in asked or len(platform.storage) == 1
    matrix, *others = cells
    data: dict[str, Any] = {
        "title": f"Screen of {count} nodes",
        "question": "Which nodes differ from the others?",
        "matrix": matrix,
        "include": [cell for one in others for cell in _expanded(one)],
        "measure": {
            "trials": wanted.blocks,
            "warmup": "3 steps",
            "until": wanted.until,
            "timeout": "5 min",
            "turns": False,
            # Nodes are held to their median; a declared one only spares the block that chooses one.
            **({"reference": {"node": 1}} if has_one_tier else {}),
            "explain": False,  # nodes are held to each other, which no probe would help
            "tolerate": ["contended", "throttled", "stalled"],
        },
    }
    return Session(NAME, built_study(NAME, data), platform)


def _heaviest(network: Training) -> str:
    """Name the layer that takes most of a step: its products are of the network's own shapes."""
    (one, _), *_ = distinct(network, _BATCH, most=1)
    return name_of(network.name, one.site.path, one.passes[-1])


def _device(wanted: Wanted, info: FrameworkInfo, platform: Platform) -> str:
    refusal = info.refuses("device", wanted.device or "gpu")
    if wanted.device is None:
        return "gpu" if platform.accelerators and refusal is None else "cpu"
    if refusal is not None:
        raise UsageError(f"--device {wanted.device}: {refusal}.")
    return wanted.device


def _require_known(asked: Sequence[str]) -> None:
    for name in asked:
        if name not in MEASURES:
            raise UsageError(
                f"--measure {name}: no measure is called so.{nearest(name, MEASURES)}\n"
                f"    Known: {', '.join(MEASURES)}."
            )
    if set(asked) == {"together"}:
        raise UsageError(
            "--measure together: what all nodes reach together names none of them.\n"
            "    Add another measure, for example --measure pairs."
        )


def _require_possible(wanted: Wanted, platform: Platform, possible: Sequence[str]) -> None:
    """Refuse what is asked for by name and would be left out."""
    lost = [one for one in wanted.measures if one not in possible]
    if lost or not possible:
        asked = listed(lost or MEASURES, len(MEASURES))
        can = ", ".join(possible) or "nothing"
        raise UsageError(
            f"{wanted.framework} on {platform.name} cannot measure {asked}.\n    It can: {can}."
        )


def _expanded(values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Give each combination: what a study includes are single cells."""
    lists = [one if isinstance(one, list) else [one] for one in values.values()]
    for each in itertools.product(*lists):
        yield dict(zip(values, each, strict=True))
