"""Give each rank the variables by which it finds the others: Bakeoff's and its framework's.

What a framework's or a library's own starter would have set (torchrun, horovodrun) stands in the
framework's file, with gaps that are filled in here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from harness.launch.contract import Node
from harness.study.framework_variables import Variables


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


def variables(
    seat: Seat, nodes: Sequence[Node], each: int, own: Variables, *, threads: int | None = None
) -> dict[str, str]:
    """Give the environment that leads a rank to the others; ``own`` are its framework's."""
    size = len(nodes) * each
    first, here = nodes[0], nodes[seat.node]
    addresses = [f"{node.address}:{port}" for node in nodes for port in node.ports[:each]]
    facts = {
        "rank": str(seat.rank),
        "size": str(size),
        "local_rank": str(seat.local_rank),
        "local_size": str(each),
        "node": str(seat.node),
        "nodes": str(len(nodes)),
        "host": here.name or here.address,
        "meeting_host": first.address,
        "meeting_port": str(first.ports[-1]),
        "addresses": json.dumps(addresses, separators=(",", ":")),
        "loopback": "lo" if len(nodes) == 1 else "",
        "threads": "" if threads is None else str(threads),
    }
    return {
        "BAKEOFF_RANK": facts["rank"],
        "BAKEOFF_SIZE": facts["size"],
        "BAKEOFF_LOCAL_RANK": facts["local_rank"],
        "BAKEOFF_LOCAL_SIZE": facts["local_size"],
        "MASTER_ADDR": facts["meeting_host"],
        "MASTER_PORT": facts["meeting_port"],
        **own.of_a_rank(facts, alone=size == 1),
    }
