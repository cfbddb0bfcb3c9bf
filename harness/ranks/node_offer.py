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
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import Any

from harness.agent import processes
from harness.errors import Unavailable
from harness.machine.small_files import boot_id
from harness.machine.sysfs_topology import read_topology
from harness.machine.topology import Topology
from harness.store.json_text import parse
from harness.store.typed import read


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


@dataclass(frozen=True)
class Offer:
    """What a node offers to every trial of a session."""

    boot: str
    cpus: tuple[int, ...]
    ports: tuple[int, ...]
    topology: Topology


def read_offer(printed: str, node: str) -> Offer:
    """Read what a node printed; refuse what is no offer."""
    try:
        return read(Offer, parse(printed.encode(errors="replace")))
    except ValueError as problem:
        raise Unavailable(f"{node} did not say what it offers: {problem}.") from None


if __name__ == "__main__":
    wanted, *of_run = sys.argv[1:]
    if of_run:
        sweep(of_run[0], of_run[1:])
    sys.stdout.write(json.dumps(offer(int(wanted))) + "\n")
