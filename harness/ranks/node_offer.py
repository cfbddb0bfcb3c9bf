"""What a node offers to a trial, as JSON: ``python -m harness.ranks.node_offer COUNT [RUN BOOT…]``.

A launcher runs it once on every node of an allocation, before the first trial there. What a killed
session of the run RUN left on it is ended first, unless its boot is named: it was swept before,
under whatever name, and trials may run there.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import Any

from harness.agent import processes
from harness.machine.small_files import boot_id
from harness.machine.sysfs_topology import read_topology
from harness.machine.topology import Core, Device, MemoryNode, Topology


def free_ports(count: int, address: str = "") -> tuple[int, ...]:
    """Find ``count`` free TCP ports."""
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            listener = stack.enter_context(socket.socket())
            listener.bind((address, 0))
            found.append(int(listener.getsockname()[1]))
        return tuple(found)


def offer(count: int) -> dict[str, Any]:
    """Describe this node: its name, topology and free ports."""
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    topology = asdict(replace(read_topology(cpus), links={}))
    return {
        "host": socket.gethostname(),
        "boot": boot_id(),
        "cpus": cpus,
        "ports": free_ports(count),
        "topology": json.loads(json.dumps(topology, default=sorted)),
    }


def sweep(run: str, boots: Collection[str]) -> None:
    """End what carries the mark of a run, unless this is one of the boots named."""
    if boot_id() not in boots:
        processes.sweep_marked(processes.mark(f"{run}/", prefix=True))


def read_offered_topology(raw: Mapping[str, Any]) -> Topology:
    """Read a topology back from an offer."""
    return Topology(
        tuple(Core(tuple(one["cpus"]), one["package"], one["l2"]) for one in raw["cores"]),
        tuple(_with_cpus(MemoryNode, one) for one in raw["memories"]),
        tuple(_with_cpus(Device, one) for one in raw["devices"]),
    )


def _with_cpus(kind: Any, raw: Mapping[str, Any]) -> Any:
    plain = {
        name: tuple(value) if isinstance(value, list) else value for name, value in raw.items()
    }
    return kind(**{**plain, "cpus": frozenset(raw["cpus"])})


if __name__ == "__main__":
    wanted, *of_run = sys.argv[1:]
    if of_run:
        sweep(of_run[0], of_run[1:])
    sys.stdout.write(json.dumps(offer(int(wanted))) + "\n")
