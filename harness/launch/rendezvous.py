"""Tell each rank of several where the others are, in every framework's own words.

Whoever reads them finds what torchrun, horovodrun, TensorFlow and JAX would have set. A launcher
whose ranks have an MPI's identity leaves Horovod's words out: it meets over the MPI then, and
Horovod 0.28 breaks where both are told.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from harness.launch.contract import Node

_OVER_GLOO = {"HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo"}


@dataclass(frozen=True)
class Seat:
    """Where one rank sits."""

    rank: int
    node: int
    local_rank: int


def seats(nodes: int, each: int) -> tuple[Seat, ...]:
    """Number the ranks node by node."""
    return tuple(
        Seat(node * each + local, node, local) for node in range(nodes) for local in range(each)
    )


def ports_needed(each: int) -> int:
    """Say how many free ports a node has to offer: one a rank, and one where all meet."""
    return each + 1


def variables(seat: Seat, nodes: Sequence[Node], each: int, *, has_mpi: bool) -> dict[str, str]:
    """Give the environment that leads a rank to the others."""
    size = len(nodes) * each
    found = {
        "BAKEOFF_RANK": str(seat.rank),
        "BAKEOFF_SIZE": str(size),
        "BAKEOFF_LOCAL_RANK": str(seat.local_rank),
        "BAKEOFF_LOCAL_SIZE": str(each),
        "MASTER_ADDR": nodes[0].address,
        "MASTER_PORT": str(nodes[0].ports[-1]),
    }
    if size == 1:  # alone, Horovod would start an MPI, and differ from what it is compared with
        return found if has_mpi else {**found, **_OVER_GLOO}
    if not has_mpi:
        found |= _horovod(seat, nodes, each)
    return {
        **found,
        "RANK": str(seat.rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(seat.local_rank),
        "LOCAL_WORLD_SIZE": str(each),
        "GROUP_RANK": str(seat.node),
        "GROUP_WORLD_SIZE": str(len(nodes)),
        "JAX_COORDINATOR_ADDRESS": f"{nodes[0].address}:{nodes[0].ports[-1]}",
        "TF_CONFIG": _tensorflow(seat, nodes, each),
    }


def _horovod(seat: Seat, nodes: Sequence[Node], each: int) -> dict[str, str]:
    found = {
        "HOROVOD_RANK": str(seat.rank),
        "HOROVOD_SIZE": str(len(nodes) * each),
        "HOROVOD_LOCAL_RANK": str(seat.local_rank),
        "HOROVOD_LOCAL_SIZE": str(each),
        "HOROVOD_CROSS_RANK": str(seat.node),
        "HOROVOD_CROSS_SIZE": str(len(nodes)),
        "HOROVOD_HOSTNAME": nodes[seat.node].name or nodes[seat.node].address,
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": nodes[0].address,
        "HOROVOD_GLOO_RENDEZVOUS_PORT": str(nodes[0].ports[-1]),
        **_OVER_GLOO,
    }
    if len(nodes) == 1:
        found["HOROVOD_GLOO_IFACE"] = "lo"
    return found


def _tensorflow(seat: Seat, nodes: Sequence[Node], each: int) -> str:
    workers = [f"{node.address}:{port}" for node in nodes for port in node.ports[:each]]
    task = {"type": "worker", "index": seat.rank}
    return json.dumps({"cluster": {"worker": workers}, "task": task}, separators=(",", ":"))
