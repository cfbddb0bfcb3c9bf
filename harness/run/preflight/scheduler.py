"""Ask a platform's queue, without queueing anything, whether it would take a study's jobs.

Settings are tried one by one, as the queue names only the first fault of a script.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness import private_file
from harness.commands import run
from harness.doctor.finding import DoctorFinding
from harness.errors import Unavailable, nearest
from harness.launch.batch_script import Batch
from harness.plan.allocations import Allocation
from harness.plan.plan import Plan
from harness.units import counted

_PATIENCE_S = 60.0


def look(plan: Plan, launcher: Any, wanted: Sequence[Allocation]) -> Iterator[DoctorFinding]:
    """Look at the partition, at each setting, at the devices, then at each job's size."""
    settings = plan.platform.launcher.settings
    try:
        partitions = launcher.read_partitions(answer(launcher.partitions()))
        yield from _look(plan, launcher, wanted, settings, partitions)
    except Unavailable as problem:
        yield unanswered(problem)


def unanswered(problem: Unavailable, check: str = "queue") -> DoctorFinding:
    """Say that the queue's own program is not here, or does not answer."""
    words = " ".join(str(problem).split())
    return DoctorFinding(check, "fault", words, "Run it on a login node of the cluster.")


def _look(
    plan: Plan,
    launcher: Any,
    wanted: Sequence[Allocation],
    settings: Mapping[str, str],
    partitions: Sequence[Any],
) -> Iterator[DoctorFinding]:
    name = settings.get("partition")
    mine = [one for one in partitions if (one.name == name if name else one.is_default)]
    if not mine:
        known = sorted({one.name for one in partitions})
        seen = f"the queue has no partition '{name}'.{nearest(name, known)}" if name else "none"
        remedy = f"Set launcher.settings.partition to one of: {', '.join(known)}."
        yield DoctorFinding("partition", "fault", seen, remedy)
    else:
        yield _partition(mine)
    base = {"partition": name} if name and mine else {}
    given = {key: settings[key] for key in launcher.TRIED_ALONE if settings.get(key)}
    complaints = _refused(launcher, base, given)
    for key, value in given.items():
        yield _finding(launcher, key, value, complaints.get(key))
    if mine:
        taken = {key: value for key, value in given.items() if key not in complaints}
        yield from _devices(plan, launcher, settings, mine)
        for number, one in enumerate(wanted, 1):
            yield _size(launcher, {**base, **taken}, number, one, mine)


def _refused(launcher: Any, base: Mapping[str, str], given: Mapping[str, str]) -> Mapping[str, str]:
    """Give what the queue says of each setting that it refuses.

    Many a centre takes no job without an account or a constraint: so what is accepted stays, and
    what was refused beside less is tried once more beside it.
    """
    if not given or _complaint(launcher, {**base, **given}) is None:
        return {}
    taken, left, complaints = dict(base), list(given), dict[str, str]()
    tried = -1
    while left and tried != len(left):
        tried = len(left)
        for key in tuple(left):
            complaint = _complaint(launcher, {**taken, key: given[key]})
            if complaint is None:
                taken[key] = given[key]
                left.remove(key)
            else:
                complaints[key] = complaint
    for key in left if len(left) > 1 else ():
        others = {name: value for name, value in given.items() if name != key}
        if _complaint(launcher, {**base, **others}) is None:
            return {key: complaints[key]}
    return {key: complaints[key] for key in left}


def _partition(mine: Sequence[Any]) -> DoctorFinding:
    one, usable, idle = mine[0], sum(some.usable for some in mine), sum(some.idle for some in mine)
    check = f"partition {one.name}"
    if not one.is_up:
        return DoctorFinding(check, "fault", "it is down: jobs wait there until it is up again")
    limit = "no time limit" if one.limit_min is None else f"jobs of at most {one.limit_min:g} min"
    seen = f"{counted(usable, 'node')} in service, {idle} of them idle; {limit}"
    return DoctorFinding(check, "fine" if usable else "fault", seen)


def _devices(
    plan: Plan, launcher: Any, settings: Mapping[str, str], mine: Sequence[Any]
) -> Iterator[DoctorFinding]:
    """Hold the GPUs that cells take to those that the partition has and that jobs ask for."""
    most = gpus_taken(plan)
    if not most:
        return
    there = max(one.gpus for one in mine)
    if there < most:
        seen = f"cells take {counted(most, 'GPU')} of a node; the partition's nodes have {there}"
        yield DoctorFinding("GPUs", "fault", seen, "Choose another partition, or narrow the study.")
        return
    seen = f"{there} on a node, and cells take at most {most}"
    yield too_few(launcher, settings, most, there) or DoctorFinding("GPUs", "fine", seen)


def too_few(
    launcher: Any, settings: Mapping[str, str], most: int, there: int
) -> DoctorFinding | None:
    """Say that jobs ask for fewer GPUs of a node than cells take; None where they do not."""
    asked = launcher.gpus_asked(settings)
    if asked is None or asked >= most:
        return None
    seen = f"cells take {counted(most, 'GPU')} of a node, and jobs ask for {asked or 'none'}"
    setting, pattern = launcher.GPU_SETTING
    remedy = f'Set launcher.settings.{setting}, for example "{pattern.format(there)}".'
    return DoctorFinding("GPUs", "fault", seen, remedy)


def gpus_taken(plan: Plan) -> int:
    """Count the GPUs of a node that the largest cell takes."""
    each = (one.scale.devices_per_node for one in plan.cells if one.factors["device"] == "gpu")
    return max(each, default=0)


def _size(
    launcher: Any, base: Mapping[str, str], number: int, wanted: Allocation, mine: Sequence[Any]
) -> DoctorFinding:
    check, limit = f"job {number}", mine[0].limit_min
    faults = []
    minutes, usable = wanted.minutes, sum(one.usable for one in mine)
    if wanted.nodes > usable:
        faults.append(f"the partition has {counted(usable, 'node')} in service")
    if limit is not None and minutes > limit:
        faults.append(f"the partition's limit is {limit:g} min, so it would wait for ever")
        minutes = max(1, int(limit))
    complaint = _complaint(launcher, base, wanted.nodes, minutes)
    faults += [complaint] if complaint else []
    words = f"{counted(wanted.nodes, 'node')} for at most {wanted.minutes} min"
    if not faults:
        return DoctorFinding(check, "fine", words)
    remedy = "Ask for less (--spread, --only nodes=…, --size), or choose another partition."
    return DoctorFinding(check, "fault", f"{words}: {'; '.join(faults)}", remedy)


def _complaint(
    launcher: Any, settings: Mapping[str, str], nodes: int = 1, minutes: int = 1
) -> str | None:
    """Have the queue judge a script that it does not take; None where it would run."""
    name, log = "bakeoff-preflight", "/dev/null"
    batch = Batch(argv=("true",), name=name, nodes=nodes, minutes=minutes, log=log)
    script = launcher.script(batch, settings)
    argv = launcher.rehearse(f"/proc/self/fd/{private_file.NUMBER}")
    answer = run(argv, timeout_s=_PATIENCE_S, private=script)
    if answer.code == 0:
        return None
    lines = [line for line in answer.stderr.splitlines() if line.strip() and not _is_advice(line)]
    return lines[-1] if lines else f"{shlex.join(argv)} ended with {answer.code}"


def _is_advice(line: str) -> bool:
    """Tell what sbatch adds to a word that it does not know: where to read of others."""
    return line.startswith("Try ")


def _finding(launcher: Any, key: str, value: str, complaint: str | None) -> DoctorFinding:
    check = f"{key} {value}"
    if complaint is None:
        return DoctorFinding(check, "fine", "the queue takes it")
    _, where = getattr(launcher, "EXAMPLES", {}).get(key, ("", ""))
    remedy = f"Mend launcher.settings.{key} in the platform{f' ({where})' if where else ''}."
    return DoctorFinding(check, "fault", complaint, remedy)


def answer(argv: Sequence[str]) -> str:
    """Give what a queue's program printed."""
    return run(argv, timeout_s=_PATIENCE_S).required()
