"""Judge which network carried the ranks' messages, against what the platform claims.

Whatever a fast fabric carries leaves no bytes in TCP; NCCL and UCX say themselves which transport
they chose. A claim is about nodes: what stays within one says nothing about it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from harness.verdicts.thresholds import THRESHOLDS, Finding

_FAST = re.compile(r"infiniband|omni-?path|slingshot|roce|aries|gemini|efa|rdma", re.IGNORECASE)
_SOCKETS = ("NET/Socket", "tcp")
_LOOPBACK = "lo"


@dataclass(frozen=True)
class Claim:
    """The network that a platform claims between its nodes."""

    fabric: str = ""
    interface: str = ""

    @property
    def is_fast(self) -> bool:
        """Whether messages pass the kernel's sockets by, if the claim holds."""
        return bool(_FAST.search(self.fabric))


@dataclass(frozen=True)
class Route:
    """The networks that one rank used."""

    rank: str
    """Its number and host."""
    sent: Mapping[str, int]
    """Interface -> bytes over TCP."""
    transports: Mapping[str, int] = field(default_factory=dict)
    """What a library says it chose -> how many channels."""


def judge_routes(claim: Claim, routes: list[Route]) -> tuple[Finding, ...]:
    """Find the ranks whose messages used another network than claimed."""
    return tuple(Finding("misrouted", text) for route in routes for text in _astray(claim, route))


def _astray(claim: Claim, route: Route) -> Iterator[str]:
    if claim.is_fast:
        slow = {one: n for one, n in route.transports.items() if one.startswith(_SOCKETS)}
        if slow:
            named = ", ".join(f"{one} ({n})" for one, n in slow.items())
            yield f"{route.rank} talked through {named}, not the claimed {claim.fabric}"
            return
    interface, sent = _busiest(route.sent)
    if sent / 1e6 <= THRESHOLDS["sockets"].value:
        return
    if claim.is_fast:
        yield (
            f"{route.rank} sent {sent / 1e6:,.1f} MB through sockets of {interface}, not the "
            f"claimed {claim.fabric}"
        )
    elif claim.interface and not _is_of(interface, claim.interface):
        yield (
            f"{route.rank} sent {sent / 1e6:,.1f} MB through {interface}, not the claimed "
            f"{claim.interface}"
        )


def _busiest(sent: Mapping[str, int]) -> tuple[str, int]:
    outside = {name: count for name, count in sent.items() if name != _LOOPBACK}
    return max(outside.items(), key=lambda one: one[1], default=("", 0))


def _is_of(interface: str, claimed: str) -> bool:
    """Tell whether an interface is the claimed one, or a part of it: ib0.8001, bond0:1."""
    return interface == claimed or interface.startswith((f"{claimed}.", f"{claimed}:"))
