"""Read the topology of this machine from /sys: cores, caches, memories, NVIDIA GPUs.

``root`` lets a test lay out a /sys and /proc of its own.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from harness.machine.gpu_memory import of_gpus
from harness.machine.number_lists import read_list
from harness.machine.small_files import read_small
from harness.machine.topology import Core, Device, MemoryNode, Topology, flat, with_nearest


def read_topology(
    allowed: Collection[int],
    *,
    root: Path = Path("/"),
    environ: Mapping[str, str] = os.environ,
) -> Topology:
    """Read what these CPUs make up; what /sys does not show is left out."""
    cpus = root / "sys/devices/system/cpu"
    cores: dict[tuple[int, ...], Core] = {}
    for cpu in read_list(read_small(cpus / "online")) or sorted(allowed):
        siblings = read_list(read_small(cpus / f"cpu{cpu}/topology/thread_siblings_list")) or (cpu,)
        package = read_small(cpus / f"cpu{cpu}/topology/physical_package_id")
        package_number = int(package) if package.lstrip("-").isdigit() else 0
        cores.setdefault(siblings, Core(siblings, max(0, package_number), _l2(cpus, cpu)))
    memories, distances = _memories(root / "sys/devices/system/node")
    topology = Topology(
        tuple(cores.values()),
        with_nearest(memories, distances) or flat(allowed).memories,
        _gpus(root, environ),
    )
    return topology.within(allowed)


def read_distances(root: Path = Path("/")) -> tuple[tuple[int, ...], ...]:
    """Give the distances between NUMA nodes as ``numactl -H`` prints them."""
    folder = root / "sys/devices/system/node"
    nodes = read_list(read_small(folder / "online"))
    rows = (read_small(folder / f"node{number}/distance") for number in nodes)
    return tuple(tuple(map(int, row.split())) for row in rows if row)


def _l2(cpus: Path, cpu: int) -> int:
    """Number a second-level cache by its first CPU; a core without one has its own number."""
    for index in (cpus / f"cpu{cpu}/cache").glob("index*"):
        if read_small(index / "level") == "2":
            return min(read_list(read_small(index / "shared_cpu_list")), default=cpu)
    return cpu


def _memories(folder: Path) -> tuple[list[MemoryNode], dict[tuple[int, int], int]]:
    numbers = read_list(read_small(folder / "online"))
    found, elsewhere = [], of_gpus(folder.parents[3])
    for number in numbers:
        if number in elsewhere:
            continue
        total = read_small(folder / f"node{number}/meminfo").partition("MemTotal:")[2].split()
        size = int(total[0]) * 1024 if total else None
        cpus = frozenset(read_list(read_small(folder / f"node{number}/cpulist")))
        if size == 0:
            continue
        found.append(MemoryNode(number, cpus, "DDR", size, _side_cache(folder, number)))
    rows = [read_small(folder / f"node{number}/distance").split() for number in numbers]
    distances = {
        (a, b): int(value)
        for a, row in zip(numbers, rows, strict=True)
        for b, value in zip(numbers, row, strict=False)
    }
    return [_named(one, found, folder.parent) for one in found], distances


def _named(one: MemoryNode, every: list[MemoryNode], system: Path) -> MemoryNode:
    """Memory without CPUs that is smaller than the rest is MCDRAM on Knights Landing, else HBM.

    CXL and persistent memory have no CPUs either, but are larger than, or as large as, the rest.
    """
    owners = [other for other in every if other.cpus]
    if one.cpus or not owners or one.size is None:
        return one
    whole = sum(other.size or 0 for other in owners)
    others = sum(other.size or 0 for other in every if not other.cpus)
    if others >= whole:
        return one
    model = read_small(system.parents[2] / "proc/cpuinfo")
    kind = "MCDRAM" if "Xeon Phi" in model else "HBM"
    return MemoryNode(one.number, one.cpus, kind, one.size, None)


def _side_cache(folder: Path, number: int) -> int | None:
    """Read the size of the cache in front of a memory (Linux >= 5.2)."""
    sizes = (read_small(one) for one in (folder / f"node{number}/memory_side_cache").glob("*/size"))
    return max((int(size) for size in sizes if size.isdigit()), default=None)


def _gpus(root: Path, environ: Mapping[str, str]) -> tuple[Device, ...]:
    """List the GPUs whose device file is here, in the order of their PCI addresses, as NVML does.

    A list of numbers in CUDA_VISIBLE_DEVICES narrows them; by UUIDs, nothing is known about them.
    """
    found: list[Device] = []
    for folder in sorted((root / "proc/driver/nvidia/gpus").glob("*")):
        facts = {
            name.strip(): value.strip()
            for name, colon, value in (
                line.partition(":") for line in read_small(folder / "information").splitlines()
            )
            if colon
        }
        if not (root / f"dev/nvidia{facts.get('Device Minor', '')}").exists():
            continue
        near = frozenset(
            read_list(read_small(root / f"sys/bus/pci/devices/{folder.name}/local_cpulist"))
        )
        found.append(Device(len(found), near, facts.get("Model", "")))
    chosen = environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return tuple(found)
    names = [name.strip() for name in chosen.split(",")]
    if not all(name.isdigit() for name in names):
        return ()
    return tuple(one for name in names for one in found if one.index == int(name))
