"""Hand a run over to a queue for the verbs that can, and say first what it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.output import emit_json, near, note
from harness.errors import UsageError
from harness.units import counted

if TYPE_CHECKING:
    from harness.launch.queue_answers import FreeNodes
    from harness.plan.allocations import Allocation
    from harness.plan.plan import Plan


@dataclass(frozen=True)
class SubmittedJob:
    """A job as the queue took it."""

    allocation: int
    job: str
    nodes: int


@dataclass(frozen=True)
class HandedOver:
    """A run that a queue carries out."""

    run: Path
    jobs: tuple[SubmittedJob, ...]
    next: str
    """The command that waits for it."""


def queue_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the options of a run that a queue carries out."""
    for option in (
        click.option(
            "--max-node-hours",
            type=click.FloatRange(min=0, min_open=True),
            metavar="HOURS",
            help="With --detach: submit nothing that could cost more each time its jobs run.",
        ),
        click.option(
            "--max-jobs",
            type=click.IntRange(min=1),
            metavar="N",
            help="With --detach: submit at most so many jobs.",
        ),
        click.option(
            "--spread",
            type=click.IntRange(min=1),
            metavar="N",
            help="With --detach: deal each job's blocks over N allocations, one after another.",
        ),
        click.option(
            "--detach",
            is_flag=True,
            help="Let the platform's queue run it, or without one this machine; come back at once.",
        ),
    ):
        function = option(function)
    return function


def hand_over(
    plan: Plan,
    waiting: Mapping[str, int],
    lay_out: Callable[[], Path],
    *,
    max_jobs: int | None,
    max_node_hours: float | None,
    spread: int | None,
    as_json: bool,
) -> None:
    """Say what it costs, refuse what costs too much, and submit it.

    ``lay_out`` gives the run's directory, and makes it where there is none yet.
    """
    from harness.plan.allocations import allocations
    from harness.plan.duration import estimate
    from harness.run.unattended import queue
    from harness.store.files import once_there_is_space
    from harness.store.layout import RunPaths

    if not queue.has_queue(plan.platform):
        if max_jobs is not None or spread is not None:
            raise UsageError(
                "--max-jobs and --spread divide a queue's jobs; this platform has no queue."
            )
        (whole,) = allocations(plan, estimate(plan), waiting, most=1)
        _refuse_dear(whole.node_hours, max_node_hours)
        _leave_running(lay_out, as_json=as_json)
        return
    launcher = queue.queue_of(plan.platform)
    if spread is not None and not hasattr(launcher, "part"):
        raise UsageError(
            f"--spread deals blocks over Slurm's job arrays; {plan.platform.name} has the queue of "
            f"{plan.platform.launcher.name}. Let --max-jobs cut the study into more jobs."
        )
    wanted = allocations(plan, estimate(plan), waiting, most=max_jobs, parts=spread or 1)
    count = sum(one.parts for one in wanted)
    if count > 1 and plan.measure.is_repeated:
        key = "stop" if plan.measure.stop else "until_interval"
        raise UsageError(
            f"measure.{key} decides over all cells together, and these would run in "
            f"{count} allocations: add --max-jobs 1."
        )
    most = _say_costs(wanted)
    _require_nodes(queue.free(plan.platform), wanted)
    _refuse_dear(most, max_node_hours, ", each time the jobs run,")
    paths = RunPaths(lay_out())
    name = near(paths.root)
    with once_there_is_space(f"go on with `bakeoff resume {name} --detach`"):
        submitted = queue.submit(paths, plan.platform, wanted)
    note(f"Submitted: {', '.join(one.job for one in submitted)}.")
    note(
        f"You may log out. Next: bakeoff status {name}, bakeoff watch {name}, "
        f"bakeoff cancel {name}, and where trials are left: bakeoff resume {name} --detach"
    )
    if as_json:
        jobs = tuple(SubmittedJob(one.number, one.job, one.nodes) for one in submitted)
        emit_json(HandedOver(paths.root, jobs, next=f"bakeoff status {paths.root} --wait"))


def _say_costs(wanted: Sequence[Allocation]) -> float:
    """Say what each job takes; give the node-hours that all of them take at most."""
    for number, one in enumerate(wanted, 1):
        times = f"{one.parts} times " if one.parts > 1 else ""
        note(
            f"Job {number}: {counted(one.nodes, 'node')}, {counted(len(one.keys), 'cell')}, "
            f"{counted(one.trials, 'trial')}, {times}at most {one.minutes} min, "
            f"guessed {one.node_hours:.2f} node-hours"
        )
    hours = sum(one.node_hours for one in wanted)
    most = sum(one.most_node_hours for one in wanted)
    note(f"Together: {hours:.2f} node-hours guessed, {most:.2f} at most each time the jobs run.")
    return most


def _require_nodes(there: FreeNodes, wanted: Sequence[Allocation]) -> None:
    """Say how many nodes a queue has; refuse a job that asks for more."""
    largest = max(one.nodes for one in wanted)
    note(
        f"The queue has {counted(there.usable, 'node')}, {there.idle} of them idle; the largest "
        f"job asks for {largest}."
    )
    if largest > there.usable:
        raise UsageError(
            f"A job of {counted(largest, 'node')} would wait for ever; nothing was submitted. "
            "Narrow the study (--only nodes=…), or the platform's partition."
        )


def _refuse_dear(hours: float, most: float | None, when: str = "") -> None:
    """Refuse what could cost more node-hours than wanted."""
    if most is not None and not hours <= most:  # "nan" caps nothing
        raise UsageError(
            f"{hours:.2f} node-hours{when} is more than --max-node-hours {most:g}; "
            "nothing was submitted. "
            "Measure less (--size, --only, --set measure.trials=…)."
        )


def _leave_running(lay_out: Callable[[], Path], *, as_json: bool) -> None:
    """Carry a run out on this machine in a session that needs no terminal."""
    from harness.run.unattended import detached
    from harness.store.layout import RunPaths

    paths = RunPaths(lay_out())
    log, name = detached.start(paths), near(paths.root)
    note(f"At work without a terminal; you may log out. What it says: {near(log)}")
    note(f"Next: bakeoff status {name}, bakeoff watch {name}, or bakeoff cancel {name}")
    if as_json:
        emit_json(HandedOver(paths.root, (), next=f"bakeoff status {paths.root} --wait"))
