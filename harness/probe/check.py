"""Compare a profile's claims with what this machine shows."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from harness.errors import UsageError
from harness.launch.contract import Launcher
from harness.platform.platform import Platform
from harness.platform.sources import hardware_leaves
from harness.probe.probe import MachineReadings, profile
from harness.toml.document import Document
from harness.toml.tables import check
from harness.toml.write import toml_text

State = Literal["agrees", "differs", "not seen"]
_CLOSE = 0.02
"""Sizes and bandwidths may differ by so much: MemTotal depends on the kernel."""
_NOT_OF_A_NODE = ("nodes", "price_per_node_hour")
_GRANTED = ("node.cpu_quota", "node.memory_share")
"""What the probe always sees: where it gives none, there is none."""


@dataclass(frozen=True)
class Compared:
    """One claim, held against the machine."""

    place: str
    claim: Any
    fact: Any
    state: State
    tag: str
    """Measured, declared or unknown; declared where the profile gives no source."""


def facts(seen: MachineReadings) -> Platform:
    """Read a probe's profile as if it came from a file."""
    document = Document("this machine", toml_text(profile(seen, "this machine")))
    platform = check(document, Platform, {**document.data, "name": "here"})
    document.refuse_faults()
    assert platform is not None, "a profile without faults has its value"
    return platform


def compare(claimed: Platform, seen: MachineReadings) -> list[Compared]:
    """Compare each claim about a node with the fact, where one is to be had here."""
    fact_of = facts(seen)
    there = dict(hardware_leaves(fact_of.model_dump(exclude_none=True)))
    found = []
    for place, claim in hardware_leaves(claimed.model_dump(exclude_none=True)):
        if place in _NOT_OF_A_NODE or claim in ((), ""):
            continue
        fact = there.get(place)
        if place.startswith("storage.") and place.endswith(".path"):
            fact = claim if os.access(claim, os.W_OK) else "no such folder, or not ours to write to"
        elif place in _GRANTED or (place.startswith("accelerators[") and not fact_of.accelerators):
            fact = "none" if fact is None else fact
        source = claimed.sources.get(place)
        tag = "declared" if source is None else source.tag
        found.append(Compared(place, claim, fact, _state(claim, fact), tag))
    return found


def is_other_machine(claimed: Platform, seen: MachineReadings) -> str | None:
    """Say why this cannot be the machine that a profile describes."""
    node, machine = claimed.node, seen.machine
    if node.architecture and node.architecture != machine.architecture:
        return f"its architecture is {node.architecture}, and here is {machine.architecture}"
    if node.cpu and machine.cpu_model and not _alike(node.cpu, machine.cpu_model):
        return f"its CPU is {node.cpu}, and here is {machine.cpu_model}"
    return None


def names_login_node(
    claimed: Platform, launcher: Launcher, environ: Mapping[str, str]
) -> str | None:
    """Name this host, where a queue has the nodes that the profile describes and this is none."""
    if not hasattr(launcher, "script"):
        return None
    host = socket.gethostname()
    try:
        given = launcher.nodes(claimed.launcher.settings, environ)
    except UsageError:  # no allocation
        return host
    own = host.partition(".")[0]
    return None if own in {name.partition(".")[0] for name in given} else host


def unsourced(claimed: Platform) -> list[str]:
    """List the claims without a source."""
    leaves = hardware_leaves(claimed.model_dump(exclude_none=True))
    return [place for place, value in leaves if place not in claimed.sources and value != ()]


def tally(claimed: Platform) -> Mapping[str, int]:
    """Count values by where they come from."""
    count = {"measured": 0, "declared": 0, "unknown": 0}
    present = {place for place, _ in hardware_leaves(claimed.model_dump(exclude_none=True))}
    for place in present:
        source = claimed.sources.get(place)
        count["declared" if source is None else source.tag] += 1
    count["unknown"] += sum(
        one.tag == "unknown" for place, one in claimed.sources.items() if place not in present
    )
    for ceiling in claimed.ceilings.values():
        count[ceiling.tag] += 1
    return count


def _state(claim: Any, fact: Any) -> State:
    if fact is None:
        return "not seen"
    if isinstance(claim, int | float) and isinstance(fact, int | float) and claim > 1 << 20:
        return "agrees" if abs(claim - fact) <= _CLOSE * claim else "differs"
    if isinstance(claim, str) and isinstance(fact, str):
        return "agrees" if _alike(claim, fact) else "differs"
    return "agrees" if claim == fact else "differs"


def _alike(claim: str, fact: str) -> bool:
    """Compare names as vendors vary them: "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz"."""
    words = claim.lower().replace("(r)", "").replace("(tm)", "").split()
    return all(word in fact.lower() for word in words if word != "intel")
