"""Draw a binding as text: which rank has which cores, memory and accelerators."""

from __future__ import annotations

from collections.abc import Iterable

from harness.launch.binding import Binding, Share, zip_cores
from harness.machine.topology import FAST, Topology
from harness.units import size_text


def ranges(numbers: Iterable[int]) -> str:
    """Write CPU numbers as Linux does: 0-3,8."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts) or "none"


def draw_node(topology: Topology) -> str:
    """Describe a node's memories, cores and accelerators in a few lines."""
    ways = sorted({len(core.cpus) for core in topology.cores})
    tiles = {core.l2 for core in topology.cores}
    packages = {core.package for core in topology.cores}
    threads = "/".join(map(str, ways))
    lines = [
        f"{len(packages)} socket{_s(packages)}, {len(topology.cores)} cores"
        f" x {threads} hardware thread{'' if ways == [1] else 's'}"
        + (f", {len(tiles)} second-level caches" if len(tiles) < len(topology.cores) else "")
    ]
    for one in topology.memories:
        size = f" {size_text(one.size)}" if one.size else ""
        cache = f", behind a cache of {size_text(one.cache)}" if one.cache else ""
        near = "near" if one.kind in FAST else "of"
        lines.append(
            f"  node {one.number}: {one.kind}{size}{cache}, {near} CPUs {ranges(one.cpus)}"
        )
    for device in topology.devices:
        links = {
            other: link
            for pair, link in topology.links.items()
            if device.index in pair
            for other in pair
            if other != device.index
        }
        joined = ", ".join(f"{other} {link}" for other, link in sorted(links.items()))
        place = f"near CPUs {ranges(device.cpus)}" if device.cpus else "place unknown"
        lines.append(
            f"  GPU {device.index}: {device.name or 'unnamed'}, {place}"
            + (f"; links to {joined}" if joined else "")
        )
    return "\n".join(lines)


def draw(binding: Binding) -> str:
    """Describe who runs where, with what each rank would be started with."""
    lines = []
    for rank, share in enumerate(binding.shares):
        lines.append(_rank(rank, share))
        if share.pinned:
            shown = {k: v for k, v in share.variables.items() if not k.startswith("BAKEOFF_")}
            lines += [f"          {name}={value}" for name, value in shown.items()]
    if binding.observer_cpus:
        lines.append(f"observer  CPUs {ranges(binding.observer_cpus)}")
    elif binding.observer is None:
        lines.append("observer  shares a core")
    if binding.idle:
        lines.append(f"idle      CPUs {ranges(binding.idle)}")
    lines += [f"note      {mark}" for mark in binding.marks]
    return "\n".join(lines)


def _rank(rank: int, share: Share) -> str:
    ways = zip_cores(share.cores)
    where = f"{len(share.cores)} core{_s(share.cores)}, CPUs {' + '.join(map(ranges, ways))}"
    parts = [where, f"{share.threads} thread{'' if share.threads == 1 else 's'}"]
    if share.devices:
        parts.append(f"GPU{_s(share.devices)} {ranges(share.devices)}")
    parts.append(share.memory.words)
    if share.memory.options:
        parts.append("numactl " + " ".join(share.memory.options))
    return f"rank {rank:<4} " + "; ".join(parts)


def _s(many: Iterable[object]) -> str:
    return "" if len(tuple(many)) == 1 else "s"
