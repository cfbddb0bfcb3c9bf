"""Look at everything that a study needs, at once and before anything is queued or made."""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Sequence

from harness.doctor.finding import DoctorFinding
from harness.errors import UsageError
from harness.launch.contract import Launcher
from harness.plan.allocations import Allocation, allocations
from harness.plan.duration import doubts, estimate
from harness.plan.holes import grouped
from harness.plan.plan import Plan
from harness.ranks import nodes
from harness.run.preflight import environments, machine, network, scheduler, storage, unrehearsed
from harness.units import counted, listed


def examine(plan: Plan) -> tuple[DoctorFinding, ...]:
    """Look at environments, storage and machine or queue; a fault stops the study."""
    if plan.platform.is_simulated:
        nothing = DoctorFinding("machine", "fine", "simulated: nothing starts anywhere")
        return (*_plan(plan), nothing)
    return (
        *_plan(plan),
        *environments.look(plan),
        *storage.look(plan),
        *network.look(plan),
        *_machine(plan),
    )


def jobs(plan: Plan, *, most: int | None = None, parts: int = 1) -> tuple[Allocation, ...]:
    """Pack all trials of a plan that has no run yet."""
    waiting = Counter(key for key, _ in plan.order)
    return allocations(plan, estimate(plan), waiting, most=most, parts=parts)


def _plan(plan: Plan) -> list[DoctorFinding]:
    findings = [
        DoctorFinding("left out", "warning", f"{why}: {listed(labels)}")
        for why, labels in grouped(plan.holes).items()
    ]
    findings += [DoctorFinding("plan", "warning", one) for one in doubts(plan, estimate(plan))]
    return findings or [DoctorFinding("plan", "fine", f"{counted(len(plan.cells), 'cell')}")]


def _machine(plan: Plan) -> Sequence[DoctorFinding]:
    launcher = nodes.launcher(plan.platform)
    if not hasattr(launcher, "script") or _is_allocation(plan, launcher):
        return [*machine.look(plan)]
    elsewhere = machine.not_compared(plan.platform, socket.gethostname())
    if not hasattr(launcher, "rehearse"):
        return [*unrehearsed.look(plan, launcher, jobs(plan)), elsewhere]
    return [*scheduler.look(plan, launcher, jobs(plan)), elsewhere]


def _is_allocation(plan: Plan, launcher: Launcher) -> bool:
    """Tell whether this process has been given nodes by the queue already."""
    try:
        return bool(launcher.nodes(plan.platform.launcher.settings, os.environ))
    except UsageError:
        return False
