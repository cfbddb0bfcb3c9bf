"""A node's topology as binding needs it: cores, memories, devices and their distances.

It is read from hwloc's XML (``hwloc``), hwloc's synthetic strings (``synthetic``), a profile
(``claimed``) or, by the host, from sysfs. CPU numbers are the operating system's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

FAST = frozenset({"HBM", "MCDRAM"})


@dataclass(frozen=True)
class Core:
    """One core: its hardware threads, and what it shares."""

    cpus: tuple[int, ...]
    package: int = 0
    l2: int = 0
    """Cores with the same number share a second-level cache."""


@dataclass(frozen=True)
class MemoryNode:
    """One NUMA node."""

    number: int
    cpus: frozenset[int]
    """The CPUs that it is near to, whether or not Linux lists them under it."""
    kind: str = "DDR"
    size: int | None = None
    cache: int | None = None
    """Bytes of a memory-side cache in front of it (MCDRAM or HBM in cache mode)."""


@dataclass(frozen=True)
class Device:
    """One accelerator."""

    index: int
    cpus: frozenset[int]
    """The CPUs that it is near to; empty: nobody knows."""
    name: str = ""


@dataclass(frozen=True)
class Topology:
    """One node."""

    cores: tuple[Core, ...]
    memories: tuple[MemoryNode, ...] = ()
    devices: tuple[Device, ...] = ()
    links: Mapping[tuple[int, int], str] = field(default_factory=dict)
    """Links between pairs of devices."""

    @property
    def cpus(self) -> tuple[int, ...]:
        """Every CPU, in order."""
        return tuple(sorted(cpu for core in self.cores for cpu in core.cpus))

    def within(self, allowed: Collection[int]) -> Topology:
        """Keep the part that these CPUs make up; memory near no CPU that is left is gone."""
        kept = frozenset(allowed)
        cores = tuple(
            replace(core, cpus=cpus)
            for core in self.cores
            if (cpus := tuple(cpu for cpu in core.cpus if cpu in kept))
        )
        memories = tuple(
            replace(one, cpus=one.cpus & kept) for one in self.memories if one.cpus & kept
        )
        devices = tuple(replace(one, cpus=one.cpus & kept) for one in self.devices)
        return replace(self, cores=cores, memories=memories, devices=devices)

    def near(self, cpus: Iterable[int]) -> tuple[MemoryNode, ...]:
        """Give the memories near any of these CPUs."""
        wanted = frozenset(cpus)
        return tuple(one for one in self.memories if one.cpus & wanted)


def flat(cpus: Iterable[int]) -> Topology:
    """Know nothing but CPUs: each counts as a core of its own, with one memory for all."""
    numbers = tuple(sorted(cpus))
    cores = tuple(Core((cpu,), l2=index) for index, cpu in enumerate(numbers))
    return Topology(cores, (MemoryNode(0, frozenset(numbers)),))


def with_nearest(
    memories: Iterable[MemoryNode], distances: Mapping[tuple[int, int], int]
) -> tuple[MemoryNode, ...]:
    """Give memory that Linux lists without CPUs those of the nodes that reach it fastest.

    MCDRAM and HBM in flat mode are such nodes. Whether one is fast memory is told by its size where
    nobody names it: it is smaller than the node beside it.
    """
    every = tuple(memories)
    owners = [one for one in every if one.cpus]
    found = []
    for one in every:
        if one.cpus:
            found.append(one)
            continue
        reach = {owner.number: distances.get((owner.number, one.number)) for owner in owners}
        known = [length for length in reach.values() if length is not None]
        nearest = [owner for owner in owners if not known or reach[owner.number] == min(known)]
        cpus = frozenset().union(*(owner.cpus for owner in nearest)) if nearest else frozenset()
        found.append(replace(one, cpus=cpus))
    return tuple(found)
