"""The model of a cluster: how long steps and exchanges of messages would take there.

Operations are computed at the profile's ceiling, times ``efficiency``. Messages take alpha, and
beta a byte, around a ring (Thakur et al., Int. J. High Perform. Comput. Appl. 19, 2005), which
``overlap`` hides behind computing. Ranks that exchange something wait in each step for the slowest.
Files lie on one file system that all nodes share; what is read ahead hides behind computing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, inf, log2
from typing import TYPE_CHECKING, Any

from harness import units
from harness.data.catalogue import CONTENTS
from harness.plan.cell import Cell
from harness.platform.platform import Platform
from harness.study.framework import framework_info
from harness.verdicts.credibility.plausible import OPERATIONS_PER_MAC, PASSES
from harness.worker.network.precisions import precision_of
from harness.worker.network.workload import (
    Collective,
    Nothing,
    Reading,
    Training,
    work_per_sample,
)
from harness.worker.scale import Scale

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_GRADIENT_BYTES = 4
_BUCKET_MB = 25
"""As torch's DistributedDataParallel has it."""
_NOTHING_S = 1e-6
_DRAWN = 64
"""So many steps of a window are drawn; of longer ones they are a sample."""

SETTINGS: Mapping[str, tuple[str, str]] = {
    "latency": ("5 us", "alpha: what a message takes beside its bytes"),
    "shared_memory": ("10 GB/s", "bandwidth between ranks of one node"),
    "device_link": ("", "bandwidth between GPUs of one node; none: through shared memory"),
    "storage": ("", "bandwidth of the file system of all nodes; none: nothing can be read"),
    "node_storage": ("", "what one node reads of it at most; none: all of it"),
    "efficiency": ("40 %", "share of the ceiling that training reaches"),
    "overlap": ("0 %", "share of the backward pass that exchange can hide behind"),
    "jitter": ("1 %", "spread of a rank's time from step to step"),
    "spread": ("0.5 %", "spread from trial to trial"),
    "slow_nodes": ("0 %", "share of the nodes that are slow"),
    "slow_by": ("10 %", "how much longer those take"),
    "node_mtbf": ("", "mean time between a node's deaths; none: they live for ever"),
    "link_mtbf": ("", "mean time between cuts of a node's link; none: there are none"),
}
"""Name -> default and meaning."""


_BANDWIDTHS = ("shared_memory", "device_link", "storage", "node_storage")
_SHARES = ("efficiency", "overlap", "slow_nodes")
_UNMODELLED = {
    "checkpoint_every": "the model writes no checkpoints",
    "tier": "the model has one file system, and no tiers",
    "memory_policy": "the model has one kind of memory",
}
"""Factors that change what it would say, with the reason why it does not."""


class NoModel(Exception):
    """The reason why the model cannot estimate a cell."""


@dataclass(frozen=True)
class Cluster:
    """A platform in figures."""

    platform: Platform
    latency: float
    shared_memory: float
    device_link: float | None
    storage: float | None
    node_storage: float | None
    efficiency: float
    overlap: float
    jitter: float
    spread: float
    slow_nodes: float
    slow_by: float
    node_mtbf: float | None
    link_mtbf: float | None

    @staticmethod
    def of(platform: Platform) -> Cluster:
        """Read a profile's settings."""
        given = {name: default for name, (default, _) in SETTINGS.items()}
        given |= {name: str(value) for name, value in platform.launcher.settings.items()}
        read: dict[str, Any] = {name: _read(name, text) for name, text in given.items()}
        return Cluster(platform, **read)

    def is_slow(self, node: int) -> bool:
        """Tell whether a node is one of the slow ones: the same in every run."""
        digest = hashlib.sha256(f"{self.platform.name}/{node}".encode()).digest()
        return int.from_bytes(digest[:8], "big") / 2**64 < self.slow_nodes

    def link(self, scale: Scale, factors: Mapping[str, Any]) -> float:
        """Give the bytes per second of the slowest link of a ring of all ranks.

        GPUs have links of their own, unless a cell forbids them; ranks share a node's memory. What
        leaves a node takes an adapter for each of its ranks, as far as there are any.
        """
        inside = self._link_inside(scale, factors) if scale.ranks_per_node > 1 else inf
        if scale.nodes == 1:
            return inside
        network = self.platform.network
        if network is None or network.bandwidth is None:
            raise NoModel(f"{self.platform.name} states no network.bandwidth")
        return min(inside, network.bandwidth * min(network.adapters or 1, scale.ranks_per_node))

    def _link_inside(self, scale: Scale, factors: Mapping[str, Any]) -> float:
        has_peers = factors["device"] == "gpu" and factors.get("peer") is not False
        if has_peers and self.device_link is not None:
            return self.device_link
        return self.shared_memory / scale.ranks_per_node

    def reads(self, scale: Scale) -> float:
        """Give the bytes per second that one rank reads while all of a cell's do."""
        if self.storage is None:
            raise NoModel(f"{self.platform.name} states no launcher.settings.storage")
        share = self.storage / scale.nodes
        return min(share, self.node_storage or share) / scale.ranks_per_node

    def flops(self, scale: Scale, factors: Mapping[str, Any]) -> float:
        """Give what one rank's share of a node computes at most."""
        device = factors["device"]
        name = f"{device}-{precision_of(factors['precision']).products}"
        ceiling = self.platform.ceilings.get(name)
        if ceiling is None or ceiling.compute is None:
            raise NoModel(f"{self.platform.name} states no compute ceiling '{name}'")
        if device == "gpu":
            return ceiling.compute * scale.devices_per_rank
        share = 1 / scale.ranks_per_node
        cpus = self.platform.offers()["cpus"]
        if cpus and factors.get("threads"):
            share = min(share, factors["threads"] / cpus)
        return ceiling.compute * share


@dataclass(frozen=True)
class SimulatedStep:
    """What one step of a cell takes on a quiet machine without a slow node."""

    compute_s: float
    exchange_s: float
    """Of it, what does not hide behind computing."""
    read_s: float
    """The same of reading files."""
    together: bool
    """Whether ranks wait for each other."""
    units: Mapping[str, float]
    """Work of one rank."""

    def draw(self, cluster: Cluster, chance: Any, ranks: Mapping[bool, int], shape: Any) -> Floats:
        """Draw the seconds of steps: of the slowest of some ranks, those on slow nodes apart."""
        import numpy as np
        from scipy.special import ndtri

        slowest = np.zeros(shape)
        for is_slow, count in ranks.items():
            if count:
                # the largest of so many draws from one distribution is one draw of its power
                deviation = ndtri(chance.random(shape) ** (1 / count))
                times = self.compute_s * np.exp(cluster.jitter * deviation)
                slowest = np.maximum(slowest, times * (1 + cluster.slow_by * is_slow))
        rest = self.exchange_s + self.read_s
        found: Floats = slowest + rest * np.exp(cluster.jitter * chance.standard_normal(shape))
        return found

    @property
    def seconds(self) -> float:
        """Give the whole."""
        return self.compute_s + self.exchange_s + self.read_s


def step(cluster: Cluster, cell: Cell, workload: Any) -> SimulatedStep:
    """Say what a step of a cell takes; raise NoModel where this model cannot."""
    factors, scale = cell.factors, cell.scale
    for name, why in _UNMODELLED.items():
        if factors.get(name) is not None:
            raise NoModel(why)
    if framework_info(cell.adapter).strategy(cell.strategy).divides_state:
        raise NoModel("the model's ranks hold all weights each, and exchange around a ring")
    if isinstance(workload, Nothing):
        return SimulatedStep(_NOTHING_S, 0.0, 0.0, together=False, units={cell.unit: 1.0})
    if isinstance(workload, Collective):
        size = factors["message_bytes"]
        link = cluster.link(scale, factors)
        took = _exchange_s(workload.operation, size, scale.ranks, cluster.latency, link)
        return SimulatedStep(0.0, took, 0.0, together=True, units={cell.unit: size / scale.ranks})
    if isinstance(workload, Reading):
        burnt = (factors["compute_ms"] or 0) / 1e3
        samples = float(scale.batch_per_rank)
        read = _read_s(cluster, cell, burnt)
        return SimulatedStep(burnt, 0.0, read, together=False, units={cell.unit: samples})
    if not isinstance(workload, Training) or cell.macs is None:
        raise NoModel(f"the model knows no workload of kind '{workload.kind}'")
    operations = OPERATIONS_PER_MAC * PASSES * cell.macs * scale.batch_per_rank
    compute = operations / (cluster.flops(scale, factors) * cluster.efficiency)
    exchanges = scale.ranks > 1 and factors.get("communicate") is not False
    exchange = 0.0
    if exchanges:
        size = float(_GRADIENT_BYTES * (cell.parameters or 0))
        buckets = ceil(size / ((factors["bucket_mb"] or _BUCKET_MB) * 2**20))
        link = cluster.link(scale, factors)
        latency = cluster.latency * max(1, buckets)
        took = _exchange_s("all-reduce", size, scale.ranks, latency, link)
        exchange = max(0.0, took - cluster.overlap * compute * 2 / 3)
    return SimulatedStep(
        compute,
        exchange,
        _read_s(cluster, cell, compute),
        together=exchanges,
        units={cell.unit: float(scale.batch_per_rank * work_per_sample(cell.unit, factors))},
    )


def _read_s(cluster: Cluster, cell: Cell, beside_s: float) -> float:
    """Give what reading a batch takes beyond the computing that it hides behind."""
    if cell.content is None:
        return 0.0
    if cell.own_data is not None or cell.factors["cache"] == "warm":
        raise NoModel("the model has neither a user's own files nor a page cache")
    size = CONTENTS[cell.content].median_bytes * cell.scale.batch_per_rank
    took = size / cluster.reads(cell.scale)
    return max(0.0, took - beside_s) if _reads_ahead(cell.factors) else took


def _reads_ahead(factors: Mapping[str, Any]) -> bool:
    """Tell whether a reader works beside the step; torch's loader has a batch ahead always."""
    is_loader = factors["reader"] == "dataloader"
    return is_loader or bool(factors["prefetch"]) or (factors["buffers"] or 1) > 1


def _exchange_s(operation: str, size: float, ranks: int, alpha: float, rate: float) -> float:
    if operation == "all-reduce":
        return 2 * (ranks - 1) * (alpha + size / ranks / rate)
    if operation == "all-gather":
        return (ranks - 1) * (alpha + size / ranks / rate)
    if operation == "broadcast":
        return ceil(log2(ranks)) * alpha + size / rate
    return alpha + size / rate


def windows(
    told: SimulatedStep, cluster: Cluster, chance: Any, ranks: Mapping[bool, int], steps: list[int]
) -> Floats:
    """Draw the seconds of windows of so many steps each."""
    import numpy as np

    drawn = min(max(steps), _DRAWN)
    each = told.draw(cluster, chance, ranks, (len(steps), drawn)).mean(axis=1)
    found: Floats = each * np.array(steps)
    return found


def setting_fault(setting: str, value: str) -> str | None:
    """Say what is wrong with a setting's value, if anything is."""
    try:
        _read(setting, value)
    except ValueError as fault:
        return str(fault)
    return None


def _read(name: str, text: str) -> float | None:
    if name.endswith("mtbf"):
        return units.seconds(text) if text else None
    if name == "latency":
        return units.seconds(text)
    if name in _BANDWIDTHS:
        rate = units.bytes_per_second(text) if text else None
        if rate == 0:
            raise ValueError(f"'{text}' would take for ever; leave it out where nothing limits it")
        return rate
    share = units.fraction(text)
    if name in _SHARES and not 0 <= share <= 1:
        raise ValueError(f"'{text}' is no share: from 0 % to 100 %")
    if name == "efficiency" and share == 0:
        raise ValueError(f"'{text}' of the ceiling would take for ever")
    return share
