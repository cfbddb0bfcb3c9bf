"""Make topologies without a machine: from hwloc's synthetic strings, and from profiles.

A synthetic string lists levels from the outside in, each with how many there are in one of the
level above: ``pack:2 numa:2(memory=64GB) l2:8 core:2 pu:4``. Memories may also be attached in
brackets: ``pack:1 [numa(memory=16GB)] core:17 pu:4``.
"""

from __future__ import annotations

import re
from math import prod

from harness import units
from harness.errors import UsageError
from harness.machine.topology import Core, Device, MemoryNode, Topology
from harness.platform.hardware import FAST, Memory
from harness.platform.platform import Platform

_LEVEL = re.compile(r"\s*(\[)?\s*([a-zA-Z0-9]+)(?::(\d+))?(?:\(([^)]*)\))?\s*(\])?")
_NAMES = {
    "pack": "package",
    "package": "package",
    "socket": "package",
    "numa": "numa",
    "numanode": "numa",
    "l2": "l2",
    "l2cache": "l2",
    "core": "core",
    "pu": "pu",
    "l1": "",
    "l1d": "",
    "l3": "",
    "l3cache": "",
    "group": "",
    "die": "",
}
_THREADS_TOGETHER = ("ppc64le", "ppc64")
_DOMAINS = {"snc-2": 2, "snc-4": 4}


_MOST_CPUS = 8192
"""As many as Linux itself can be built for (NR_CPUS on x86)."""
_DIGITS = len(str(_MOST_CPUS))


def read_synthetic(text: str) -> Topology:
    """Read a synthetic string; CPUs are numbered depth first, as hwloc does."""
    levels: list[tuple[str, int]] = []
    attached: list[tuple[int, int | None]] = []
    place = 0
    text = text.strip()
    while place < len(text):
        match = _LEVEL.match(text, place)
        if match is None or _NAMES.get(match[2].lower()) is None:
            raise UsageError(f"'{text[place:]}' is no level of a synthetic topology (numa:2 …)")
        place = match.end()
        name, size = _NAMES[match[2].lower()], _memory(match[4])
        if match[1] or name == "numa":
            attached.append((len(levels) + (0 if match[1] else 1), size))
        if not match[1]:
            count = int(match[3] or 1) if len(match[3] or "") <= _DIGITS else _MOST_CPUS + 1
            levels.append((name, count))
            if prod(number for _, number in levels) > _MOST_CPUS:
                raise UsageError(f"'{text[:200]}' has more than {_MOST_CPUS:,} hardware threads")
    if not levels or levels[-1][0] != "pu":
        raise UsageError(f"'{text}' must end with its hardware threads, for example pu:2")
    return _built(levels, attached or [(0, None)])


def _memory(attributes: str | None) -> int | None:
    for one in (attributes or "").replace(",", " ").split():
        key, _, value = one.partition("=")
        if key == "memory":
            try:
                return int(value) if value.isdecimal() else units.size_bytes(value)
            except ValueError as problem:
                raise UsageError(f"the memory of a synthetic topology: {problem}") from None
    return None


def _built(levels: list[tuple[str, int]], attached: list[tuple[int, int | None]]) -> Topology:
    total = 1
    for _, count in levels:
        total *= count
    cores: dict[tuple[int, ...], list[int]] = {}
    shared: dict[tuple[int, ...], tuple[int, int]] = {}
    memories: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    names = [name for name, _ in levels]
    core_depth = names.index("core") + 1 if "core" in names else len(levels)
    for cpu in range(total):
        path = _path(cpu, [count for _, count in levels])
        core = path[:core_depth]
        cores.setdefault(core, []).append(cpu)
        shared[core] = tuple(  # type: ignore[assignment]  # two numbers
            _rank(path[: names.index(name) + 1], levels) if name in names else default
            for name, default in (("package", 0), ("l2", cpu))
        )
        for index, (depth, _) in enumerate(attached):
            memories.setdefault((index, path[:depth]), []).append(cpu)
    return Topology(
        tuple(Core(tuple(cpus), *shared[core]) for core, cpus in cores.items()),
        tuple(
            MemoryNode(number, frozenset(cpus), "DDR", attached[index][1])
            for number, ((index, _), cpus) in enumerate(memories.items())
        ),
    )


def _path(number: int, counts: list[int]) -> tuple[int, ...]:
    found = []
    for count in reversed(counts):
        number, rest = divmod(number, count)
        found.append(rest)
    return tuple(reversed(found))


def _rank(path: tuple[int, ...], levels: list[tuple[str, int]]) -> int:
    number = 0
    for step, (_, count) in zip(path, levels, strict=False):
        number = number * count + step
    return number


def claimed(platform: Platform) -> Topology | None:
    """Lay out the node that a profile claims, numbered as by Linux; None: it says too little.

    Linux counts the first hardware thread of every core, then the second ones; on POWER the threads
    of a core lie together.
    """
    node = platform.node
    if node.cores is None:
        return None
    count, threads = node.cores, node.threads_per_core or 1
    sockets = node.sockets or 1
    pairs_threads = node.architecture in _THREADS_TOGETHER
    per_l2 = node.cores_per_l2 or 1
    cores = tuple(
        Core(
            tuple(
                core * threads + thread if pairs_threads else core + thread * count
                for thread in range(threads)
            ),
            core * sockets // count,
            core // per_l2,
        )
        for core in range(count)
    )
    domains = sockets * _DOMAINS.get(node.cluster_mode or "", 1)
    near = [
        frozenset(
            cpu
            for index, core in enumerate(cores)
            if index * domains // count == domain
            for cpu in core.cpus
        )
        for domain in range(domains)
    ]
    return Topology(cores, _memories(platform, near), _devices(platform, near), _links(platform))


def _memories(platform: Platform, near: list[frozenset[int]]) -> tuple[MemoryNode, ...]:
    """Slow memory is numbered first, fast memory in flat mode after it, as Linux does."""
    tiers = platform.node.memory
    slow = [tier for tier in tiers if tier.kind not in FAST]
    fast = [tier for tier in tiers if tier.kind in FAST]
    cache = sum(tier.size for tier in fast if tier.mode in ("cache", "hybrid")) or None
    # in which mode fast memory stands beside a slow one, a profile may not know
    visible = [tier for tier in fast if tier.mode in ("flat", "hybrid") or not (slow or tier.mode)]
    found: list[MemoryNode] = []
    unnamed: list[Memory | None] = [None]
    for tier in (slow or unnamed) + visible:
        for cpus in near:
            kind = tier.kind if tier is not None else "DDR" if fast else "memory"
            size = None if tier is None else tier.size // len(near)
            front = None if cache is None or kind in FAST else cache // len(near)
            found.append(MemoryNode(len(found), cpus, kind, size, front))
    return tuple(found)


def _devices(platform: Platform, near: list[frozenset[int]]) -> tuple[Device, ...]:
    found: list[Device] = []
    for one in platform.accelerators or ():
        for index in range(one.count):
            numa = one.numa[index] if one.numa else None
            cpus = near[numa] if numa is not None and numa < len(near) else frozenset()
            found.append(Device(len(found), cpus, one.model))
    return tuple(found)


def _links(platform: Platform) -> dict[tuple[int, int], str]:
    gpus = platform.accelerators or ()
    return gpus[0].links() if len(gpus) == 1 else {}
