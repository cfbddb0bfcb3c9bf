"""What a node offers to a trial: ``python -m harness.ranks.node_offer COUNT`` prints JSON.

A launcher runs it once on every node of an allocation, before the first trial there.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import Any

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
        "cpus": cpus,
        "ports": free_ports(count),
        "topology": json.loads(json.dumps(topology, default=sorted)),
    }


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
    sys.stdout.write(json.dumps(offer(int(sys.argv[1]))) + "\n")
