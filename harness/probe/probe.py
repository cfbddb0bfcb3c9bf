"""Make a platform profile of this machine, or of the share of it that is ours.

Every value says where it comes from: what the kernel or a driver counted is measured; what firmware
and vendors print is declared; what only a calibration can tell is unknown.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness import plugins
from harness.errors import UsageError
from harness.machine.gpus import Graph, read_graph
from harness.machine.hwloc_topology import read_hwloc
from harness.machine.machine import Machine, read_machine
from harness.machine.surroundings import (
    Fabric,
    Tier,
    inside,
    read_cloud,
    read_launchers,
    read_network,
    read_tiers,
)
from harness.machine.sysfs_topology import read_distances, read_topology
from harness.machine.topology import FAST, Topology
from harness.units import size_text
from harness.worker.facts import node_survey

UNKNOWN = {
    "node.memory[0].bandwidth": "calibrate measures it",
    "node.cluster_mode": "the firmware's; no file shows it",
}


@dataclass(frozen=True)
class MachineReadings:
    """Everything that was looked at."""

    machine: Machine
    topology: Topology
    topology_from: str
    distances: tuple[tuple[int, ...], ...]
    graph: Graph
    network: Fabric | None
    cloud: str | None
    tiers: tuple[Tier, ...]
    launchers: dict[str, str]
    launcher: str
    frameworks: tuple[str, ...]


def look(
    frameworks: Sequence[str] = (),
    root: Path = Path("/"),
    told: Mapping[str, Any] | None = None,
) -> MachineReadings:
    """Look at this machine; or at another, whose files lie under ``root``, by what it told."""
    told = node_survey.facts() if told is None else told
    environ: dict[str, str] = told["environ"]
    machine = read_machine(root, allowed=told["affinity"], environ=environ)
    topology, words = _topology(machine, root, told["answers"].get("hwloc"))
    return MachineReadings(
        machine=machine,
        topology=topology,
        topology_from=words,
        distances=read_distances(root),
        graph=read_graph() if machine.gpus and root == Path("/") else (),
        network=read_network(root),
        cloud=read_cloud(root),
        tiers=read_tiers(told["places"], root=root),
        launchers=read_launchers(told["answers"]),
        launcher=inside(environ),
        frameworks=tuple(frameworks),
    )


def _topology(machine: Machine, root: Path, hwloc: str | None) -> tuple[Topology, str]:
    """Read the topology from hwloc where it is installed, and from /sys otherwise."""
    if hwloc is not None:
        try:
            return read_hwloc(hwloc, "lstopo").within(machine.cpus_allowed), "hwloc"
        except UsageError:
            pass  # an hwloc that prints something else: /sys says the same
    return read_topology(machine.cpus_allowed, root=root, environ={}), "/sys"


def profile(seen: MachineReadings, title: str) -> dict[str, Any]:
    """Give the profile as its file has it: quantities with units, sources by place."""
    machine = seen.machine
    when = datetime.now(UTC).date().isoformat()
    kernel = {"measured": f"bakeoff platforms probe, {when}"}
    firmware = {"declared": f"its driver or firmware, read {when}"}
    data: dict[str, Any] = {"title": title, "nodes": 1, "node": _node(seen)}
    sources: dict[str, Any] = {"nodes": kernel, "node": kernel}
    for name in ("cpu", "hypervisor", "instance"):
        if name in data["node"]:
            sources[f"node.{name}"] = firmware
    gpus = _accelerators(machine, seen)
    data["accelerators"] = gpus
    sources["accelerators"] = kernel
    for index, one in enumerate(gpus):
        for name in ("model", "power_limit"):
            if name in one:
                sources[f"accelerators[{index}].{name}"] = firmware
    if seen.network is not None:
        network = seen.network
        data["network"] = {
            "fabric": network.name,
            "interface": network.interface,
            "adapters": network.adapters,
        }
        sources["network"] = kernel
        if network.bytes_per_s is not None:
            data["network"]["bandwidth"] = f"{network.bytes_per_s * 8 / 1e9:g} Gbit/s"
            sources["network.bandwidth"] = firmware
        else:
            sources["network.bandwidth"] = {"unknown": "the driver does not say"}
    if seen.tiers:
        data["storage"] = {
            one.name: _without_none(
                path=one.path,
                kind=one.kind,
                roles=list(one.roles),
                size=None if one.size is None else _profile_size(one.size),
            )
            for one in seen.tiers
        }
        sources["storage"] = kernel
    if seen.launcher != "local" and seen.launcher in plugins.modules("launchers"):
        data["launcher"] = {"name": seen.launcher}
    sources |= {place: {"unknown": why} for place, why in UNKNOWN.items()}
    if gpus:
        sources["accelerators[0].memory_bandwidth"] = {"unknown": "calibrate measures it"}
    return {**data, "sources": sources}


def _node(seen: MachineReadings) -> dict[str, Any]:
    machine, topology = seen.machine, seen.topology
    shared = [core for core in topology.cores if core.l2 != topology.cores[0].l2]
    per_l2 = len(topology.cores) - len(shared)
    whole = machine.cores is not None and machine.cores == len(topology.cores)
    share = machine.usable_memory_bytes
    total = machine.memory_bytes
    return _without_none(
        cpu=machine.cpu_model,
        architecture=machine.architecture,
        sockets=machine.sockets,
        cores=machine.cores,
        threads_per_core=machine.threads_per_core,
        cpus=len(machine.cpus_allowed),
        cpu_quota=machine.cpu_quota,
        memory_share=_profile_size(share) if share and total and share < total else None,
        numa_nodes=len(machine.numa) or None,
        numa_distances=[list(row) for row in seen.distances] if len(seen.distances) > 1 else None,
        cores_per_l2=per_l2 if per_l2 > 1 and whole else None,
        memory=_memory(topology, total),
        hypervisor=machine.hypervisor or "none",
        instance=seen.cloud,
    )


def _memory(topology: Topology, total: int | None) -> list[dict[str, str]]:
    """Sum NUMA nodes by kind; a memory-side cache is a tier in cache mode."""
    fast = [one for one in topology.memories if one.kind in FAST and one.size]
    caches = sum(one.cache or 0 for one in topology.memories)
    slow = (total or 0) - sum(one.size or 0 for one in fast)
    tiers = [{"kind": "DDR", "size": _profile_size(slow)}] if slow > 0 else []
    for kind in sorted({one.kind for one in fast}):
        size = sum(one.size or 0 for one in fast if one.kind == kind)
        tiers.append({"kind": kind, "size": _profile_size(size), "mode": "flat"})
    if caches:
        tiers.append({"kind": "HBM", "size": _profile_size(caches), "mode": "cache"})
    return tiers


def _accelerators(machine: Machine, seen: MachineReadings) -> list[dict[str, Any]]:
    """Group equal GPUs; links and places are known only where there is one kind."""
    gpus = machine.gpus or ()
    kinds = list(dict.fromkeys((gpu.name, gpu.memory_bytes, gpu.power_limit_w) for gpu in gpus))
    found = []
    for name, memory, power in kinds:
        members = [gpu for gpu in gpus if (gpu.name, gpu.memory_bytes) == (name, memory)]
        found.append(
            _without_none(
                model=name,
                count=len(members),
                memory=_profile_size(memory) if memory else None,
                power_limit=f"{power:g} W" if power else None,
                graph=[list(pair) for pair in seen.graph] if len(kinds) == 1 else None,
                uuids=[gpu.uuid for gpu in members],
            )
        )
        if not found[-1].get("graph"):
            found[-1].pop("graph", None)
    return found


def summary(seen: MachineReadings) -> list[str]:
    """Say in a few lines what was found."""
    machine = seen.machine
    sockets, cores = machine.sockets or 1, machine.cores or len(machine.cpus_allowed)
    share = (
        f"{sockets} socket{'s' * (sockets != 1)} x {cores // sockets} cores x "
        f"{machine.threads_per_core or 1} threads, your share: {machine.usable_cpus:g} CPUs, "
        f"{size_text(machine.usable_memory_bytes or 0)} of {size_text(machine.memory_bytes or 0)}"
        f" (topology from {seen.topology_from})"
    )
    lines = [share]
    gpus = machine.gpus or ()
    links = sorted({link for _, _, link in seen.graph})
    if gpus:
        joined = f", joined by {'/'.join(links)}" if links else ""
        lines.append(f"{len(gpus)} x {gpus[0].name}{joined}")
    parts = []
    if seen.network is not None:
        parts.append(f"{seen.network.name} on {seen.network.interface}")
    parts += [f"{tier.name}: {tier.kind} at {tier.path}" for tier in seen.tiers]
    lines.append("; ".join(parts) or "no network and no storage seen")
    launchers = ", ".join(f"{name} ({words})" for name, words in seen.launchers.items()) or "none"
    frameworks = ", ".join(seen.frameworks) or "none"
    lines.append(f"launchers: {launchers}; frameworks: {frameworks}")
    if seen.launcher not in plugins.modules("launchers"):
        lines.append(
            f"inside an allocation of {seen.launcher}, for which Bakeoff has no launcher: the "
            "profile names none, so ranks start on this node alone"
        )
    return lines


def _profile_size(size: int) -> str:
    """Write a size as a profile does: whole GiB, or MiB."""
    return f"{size // 2**30} GiB" if size % 2**30 == 0 else f"{round(size / 2**20)} MiB"


def frameworks_here() -> tuple[str, ...]:
    """Name the framework environments that are ready on this machine."""
    from harness.environments.inventory import inventory

    return tuple(one.name for one in inventory() if one.state == "ready")


def hostname() -> str:
    """Give a name for a profile of this machine."""
    return os.uname().nodename.partition(".")[0].lower() or "here"


def _without_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
