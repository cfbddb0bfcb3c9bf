"""Plan a session that times the layers of a network alone, those of equal shape once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness import plugins
from harness.doctor.ceilings import Session
from harness.errors import UsageError, nearest
from harness.platform.platform import Platform
from harness.study.framework import framework_info, framework_names
from harness.study.matrix import adapter_of
from harness.study.study import built_study
from harness.worker.network.alone import (
    PASSES,
    AloneSite,
    alone_sites,
    bytes_of,
    layer_alone,
    macs_of,
    name_of,
)
from harness.worker.network.precisions import PRECISIONS
from harness.worker.network.workload import Training

_MACS_PER_BYTE = 8
"""What a byte counts beside a multiplication, where layers are ordered: norms multiply nothing."""


@dataclass(frozen=True)
class Wanted:
    """What is to be timed, in which frameworks and how."""

    network: str
    frameworks: tuple[str, ...]
    batch: int
    precision: str
    device: str
    threads: int | None
    """None: as many as there are."""
    layouts: tuple[str, ...]
    heaviest: int | None
    """None: all layers, and the step beside them."""
    trials: int
    until: str


def training_called(name: str) -> Training:
    """Give a network by name; refuse what trains none."""
    networks = [
        one for one in plugins.workload_names() if isinstance(plugins.workload(one), Training)
    ]
    if name not in networks:
        raise UsageError(
            f"no network is called '{name}'.{nearest(name, networks)}\n"
            f"    Known: {', '.join(networks)}."
        )
    found: Training = plugins.workload(name)
    return found


def distinct(training: Training, batch: int, most: int | None) -> list[tuple[AloneSite, int]]:
    """Give one layer of each shape and how many are like it, the heaviest first."""
    alike: dict[str, list[AloneSite]] = {}
    for one in alone_sites(training.network):
        alike.setdefault(one.shape, []).append(one)
    found = [(some[0], len(some)) for some in alike.values()]
    ordered = sorted(found, key=lambda one: -one[1] * _weight(training, one[0], batch))
    return ordered[:most]


def _measures_ceilings(framework: str) -> bool:
    name = adapter_of(framework)  # one that there is not is refused with the study
    return name in framework_names() and "ceiling" in framework_info(name).kinds


def _weight(training: Training, one: AloneSite, batch: int) -> int:
    alone = layer_alone(training, name_of(training.name, one.site.path, one.passes[-1]))
    return batch * macs_of(alone) + _MACS_PER_BYTE * bytes_of(alone, batch, PRECISIONS["fp32"])


def session(wanted: Wanted, platform: Platform) -> Session:
    """Plan the trials; beside the layers the memory's ceiling, where a framework measures it."""
    training = training_called(wanted.network)
    chosen = distinct(training, wanted.batch, wanted.heaviest)
    names = [
        name_of(wanted.network, one.site.path, passes)
        for one, _ in chosen
        for passes in PASSES
        if passes in one.passes
    ]
    matrix: dict[str, Any] = {
        "workload": names if wanted.heaviest else [*names, wanted.network],
        "framework": list(wanted.frameworks),
        "batch": wanted.batch,
        "precision": wanted.precision,
        "device": wanted.device,
        "layout": list(wanted.layouts),
    }
    if wanted.threads:
        matrix["threads"] = wanted.threads
    measure = {"trials": wanted.trials, "warmup": "3 steps", "until": wanted.until}
    # What a machine needs at best, it needs for one alone.
    data: dict[str, Any] = {
        "title": f"Layers of {training.title}, alone",
        "matrix": matrix,
        "measure": {**measure, "turns": False, "timeout": "10 min"},
    }
    able = [one for one in wanted.frameworks if _measures_ceilings(one)]
    if wanted.device == "cpu" and able:
        data["include"] = [{"workload": "triad", "framework": able[0], "precision": "fp32"}]
    return Session("layers", built_study("layers", data), platform)
