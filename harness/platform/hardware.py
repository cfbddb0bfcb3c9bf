"""What a platform profile says about hardware: nodes, accelerators, network, storage.

Whatever is unknown is absent.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from harness.toml.tables import Bytes, BytesPerSecond, Flops, Listed, Table, Watts

Count = Annotated[int, Field(ge=1)]
Tag = Literal["measured", "declared", "unknown"]
LINK = re.compile(r"^(NV\d+|NVSwitch|PIX|PXB|PHB|NODE|SYS|XGMI|C2C)$")
"""What joins two accelerators, as `nvidia-smi topo -m` names it; NV2 is two bonded NVLinks."""
FAST = ("HBM", "MCDRAM")
"""Kinds of memory that stand beside a slower one."""


class Memory(Table):
    """One kind of memory in a node."""

    kind: Literal["DDR", "LPDDR", "HBM", "MCDRAM"]
    size: Bytes
    mode: Literal["flat", "cache", "hybrid"] | None = None
    """How fast memory stands beside the slow one."""
    bandwidth: BytesPerSecond | None = None
    """Of the whole node."""

    @model_validator(mode="after")
    def _only_fast_memory_has_a_mode(self) -> Self:
        if self.mode is not None and self.kind not in FAST:
            raise ValueError(f"mode belongs to fast memory ({', '.join(FAST)}), not to {self.kind}")
        return self


class Node(Table):
    """One node, and the share of it that a process may use."""

    cpu: str | None = None
    """Model name."""
    architecture: str | None = None
    """As `uname -m` prints it."""
    sockets: Count | None = None
    cores: Count | None = None
    """Cores of the whole node."""
    threads_per_core: Count | None = None
    cpus: Count | None = None
    """CPUs that this harness may use, where that is less than the node has."""
    cpu_quota: Annotated[float, Field(gt=0, strict=False)] | None = None
    """CPUs' worth of time that a control group grants, for example 1.5."""
    memory_share: Bytes | None = None
    """What a control group grants, where that is less than the node has."""
    numa_nodes: Count | None = None
    """Memory domains, those without CPUs included."""
    numa_distances: Listed[Listed[int]] = ()
    """As `numactl -H` prints them."""
    cores_per_l2: Count | None = None
    """How many cores share a second-level cache: 2 on Knights Landing."""
    cluster_mode: Literal["all2all", "hemisphere", "quadrant", "snc-2", "snc-4"] | None = None
    memory: Listed[Memory] = ()
    hypervisor: str | None = None
    """What runs beneath the kernel; "none" on bare metal."""
    instance: str | None = None
    """The cloud's name for this kind of machine."""
    power_limit: Watts | None = None

    @model_validator(mode="after")
    def _counts_agree(self) -> Self:
        if self.cores and self.sockets and self.cores % self.sockets:
            raise ValueError(f"{self.cores} cores do not divide among {self.sockets} sockets")
        if self.cores and self.cpus and self.cpus > self.cores * (self.threads_per_core or 16):
            raise ValueError(f"{self.cpus} cpus are more than {self.cores} cores have")
        rows = self.numa_distances
        if any(len(row) != len(rows) for row in rows):
            raise ValueError("numa_distances must be square: one row and one column a NUMA node")
        if rows and self.numa_nodes and len(rows) != self.numa_nodes:
            raise ValueError(
                f"numa_distances has {len(rows)} rows for {self.numa_nodes} NUMA nodes"
            )
        return self

    @property
    def threads(self) -> int | None:
        """How many CPUs the whole node has."""
        return self.cores and self.cores * (self.threads_per_core or 1)

    @property
    def addressable_bytes(self) -> int | None:
        """How much memory programs can allocate: a cache is none."""
        whole = sum(tier.size for tier in self.memory if tier.mode != "cache") or None
        sizes = [size for size in (whole, self.memory_share) if size is not None]
        return min(sizes, default=None)


class Accelerators(Table):
    """Equal accelerators in each node."""

    model: str
    count: Count
    memory: Bytes | None = None
    """Of one accelerator."""
    memory_bandwidth: BytesPerSecond | None = None
    """Of one accelerator."""
    power_limit: Watts | None = None
    """Of one accelerator."""
    link: str | None = None
    """What joins them: PCIe 3, NVLink 1, NVSwitch …"""
    graph: Listed[Listed[str]] = ()
    """Pairs as `nvidia-smi topo -m` names them, for example ["0", "1", "NV2"]; "*" is every one."""
    numa: Listed[int] = ()
    """The NUMA node of each."""
    uuids: Listed[str] = ()

    @field_validator("graph")
    @classmethod
    def _pairs_are_named(cls, graph: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        for pair in graph:
            if len(pair) != 3 or not LINK.match(pair[2]):
                raise ValueError(
                    f'{list(pair)} must name two accelerators and their link, as ["0", "1", "NV2"]'
                )
        return graph

    @model_validator(mode="after")
    def _indexes_exist(self) -> Self:
        for pair in self.graph:
            for end in pair[:2]:
                if end != "*" and not (end.isdigit() and int(end) < self.count):
                    raise ValueError(f"graph: there is no accelerator {end} among {self.count}")
        for name in ("numa", "uuids"):
            if getattr(self, name) and len(getattr(self, name)) != self.count:
                raise ValueError(f"{name} must name one for each of {self.count} accelerators")
        return self

    def links(self) -> dict[tuple[int, int], str]:
        """Give the link between each pair that has one."""
        found = {}
        for first, second, link in self.graph:
            for a in range(self.count) if first == "*" else (int(first),):
                for b in range(self.count) if second == "*" else (int(second),):
                    if a != b:
                        found[min(a, b), max(a, b)] = link
        return found


class Network(Table):
    """What joins the nodes."""

    fabric: str
    interface: str | None = None
    adapters: Count | None = None
    """Per node."""
    bandwidth: BytesPerSecond | None = None
    """Of one adapter, in one direction."""


class Storage(Table):
    """One storage tier."""

    path: str
    kind: str | None = None
    """Lustre, NVMe, memory …"""
    roles: Listed[Literal["data", "checkpoint", "fast"]] = ()
    size: Bytes | None = None


class Ceiling(Table):
    """The most that this machine can do of something."""

    compute: Flops | None = None
    bandwidth: BytesPerSecond | None = None
    tag: Tag
    source: str = ""
    """The document and table, or the run that measured it."""

    @model_validator(mode="after")
    def _has_one_value_and_its_source(self) -> Self:
        values = [one for one in (self.compute, self.bandwidth) if one is not None]
        if self.tag == "unknown":
            if values:
                raise ValueError("is unknown and has a value")
        elif len(values) != 1:
            raise ValueError('needs compute = "… TFLOP/s" or bandwidth = "… GB/s", one of them')
        elif not self.source.strip():
            raise ValueError(f"is {self.tag}, so its source must say where or by which run")
        return self
