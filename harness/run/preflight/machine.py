"""Hold a platform's claims to this machine where its ranks run here, and count nodes at hand."""

from __future__ import annotations

import os
from collections.abc import Iterator

from harness.doctor.finding import DoctorFinding
from harness.errors import BakeoffError
from harness.plan.plan import Plan
from harness.platform.platform import Platform
from harness.probe import check
from harness.probe.probe import look as probe
from harness.ranks import nodes
from harness.run.preflight.wording import split
from harness.units import counted


def look(plan: Plan) -> Iterator[DoctorFinding]:
    """Count and reach the nodes, then hold each claim about one to this machine."""
    yield from _nodes(plan)
    yield from _claims(plan)


def not_compared(platform: Platform, host: str) -> DoctorFinding:
    """Say that a login node is nothing to hold claims about compute nodes to."""
    remedy = (
        f"On a node of an allocation: bakeoff platforms check {platform.name}; the network: "
        f"bakeoff run network-check --platform {platform.name}."
    )
    seen = f"not compared: they are about compute nodes, and {host} is none"
    return DoctorFinding("claims", "unknown", seen, remedy)


def _nodes(plan: Plan) -> Iterator[DoctorFinding]:
    platform, wanted = plan.platform, max(cell.scale.nodes for cell in plan.cells)
    try:
        names = nodes.launcher(platform).nodes(platform.launcher.settings, os.environ)
        for name in names[:wanted]:
            if name != nodes.HERE:
                nodes.reached(platform, name).run("true")
    except BakeoffError as problem:
        yield DoctorFinding("nodes", "fault", *split(problem))
        return
    seen = f"{len(names)} at hand, and the largest cell takes {counted(wanted, 'node')}"
    yield DoctorFinding("nodes", "fine" if len(names) >= wanted else "fault", seen)


def _claims(plan: Plan) -> Iterator[DoctorFinding]:
    platform, seen = plan.platform, probe()
    other = check.is_other_machine(platform, seen)
    if other is not None:
        remedy = (
            "Give the right --platform, or probe this one: bakeoff platforms probe --write NAME."
        )
        yield DoctorFinding("this machine", "fault", f"not {platform.name}: {other}", remedy)
        return
    login = check.names_login_node(platform, nodes.launcher(platform), os.environ)
    if login is not None:
        yield not_compared(platform, login)
        return
    claims = check.compare(platform, seen)
    for one in claims:
        if one.state == "differs":
            found = f"the profile says {one.claim}, and here is {one.fact}"
            remedy = f"Mend {one.place} in the profile, or find out what changed."
            yield DoctorFinding(one.place, "warning", found, remedy)
    agreeing = sum(one.state == "agrees" for one in claims)
    yield DoctorFinding("claims", "fine", f"{counted(agreeing, 'claim')} of the profile hold here")
