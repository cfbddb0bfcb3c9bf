"""Look at the queue of an engine that judges no script before it is submitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.doctor.finding import DoctorFinding
from harness.errors import Unavailable, nearest
from harness.plan.allocations import Allocation
from harness.plan.plan import Plan
from harness.run.preflight.scheduler import answer, gpus_taken, too_few, unanswered
from harness.units import counted


def look(plan: Plan, launcher: Any, wanted: Sequence[Allocation]) -> Iterator[DoctorFinding]:
    """Look at the queue, at the GPUs that jobs ask for, and count the nodes."""
    engine, settings = plan.platform.launcher.name, plan.platform.launcher.settings
    seen = f"{engine} judges no job before it is submitted: account and options are not looked at"
    remedy = "bakeoff plan STUDY --script prints what would be submitted: read it."
    yield DoctorFinding("jobs", "warning", seen, remedy)
    if settings.get("queue"):
        yield _queue(launcher, settings, wanted)
    most = gpus_taken(plan)
    if most:
        seen = f"jobs ask for as many as cells take of a node, {most}"
        yield too_few(launcher, settings, most, most) or DoctorFinding("GPUs", "fine", seen)
    yield _nodes(launcher, settings, wanted)


def _queue(
    launcher: Any, settings: Mapping[str, str], wanted: Sequence[Allocation]
) -> DoctorFinding:
    name = settings["queue"]
    check = f"queue {name}"
    try:
        known = {one.name: one for one in launcher.read_queues(answer(launcher.queues()))}
    except Unavailable as problem:
        return unanswered(problem, check)
    if name not in known:
        remedy = f"Set launcher.settings.queue to one of: {', '.join(sorted(known)) or 'none'}."
        return DoctorFinding(check, "fault", f"there is none.{nearest(name, known)}", remedy)
    one = known[name]
    if not one.is_up:
        return DoctorFinding(check, "fault", "it takes no jobs now, or starts none")
    longest = max(job.minutes for job in wanted)
    if one.limit_min is not None and longest > one.limit_min:
        seen = f"a job asks for {longest} min, and the queue gives {one.limit_min:g} at most"
        remedy = "Ask for less (--only, --size), or choose another queue."
        return DoctorFinding(check, "fault", seen, remedy)
    limit = "" if one.limit_min is None else f"; jobs of at most {one.limit_min:g} min"
    return DoctorFinding(check, "fine", f"takes jobs{limit}")


def _nodes(
    launcher: Any, settings: Mapping[str, str], wanted: Sequence[Allocation]
) -> DoctorFinding:
    """Count all the nodes there are: nobody says which serve a queue."""
    try:
        there = launcher.read_idle(answer(launcher.idle(settings)))
    except Unavailable as problem:
        return unanswered(problem, "nodes")
    largest = max(one.nodes for one in wanted)
    seen = f"{counted(there.usable, 'node')} in service, {there.idle} of them idle"
    if largest > there.usable:
        seen = f"{seen}; the largest job asks for {largest}, so it would wait for ever"
        return DoctorFinding("nodes", "fault", seen, "Narrow the study (--only nodes=…, --size).")
    return DoctorFinding("nodes", "fine", seen)
