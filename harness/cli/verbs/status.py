"""The verb `status`: how far a run is, and what its queue says of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

import click

from harness.cli import completion
from harness.cli.light_numpy import import_numpy
from harness.cli.output import emit, note
from harness.locks import Holder
from harness.units import counted

_FIRST_S, _LONGEST_S, _GROWTH = 5.0, 60.0, 1.5
GONE = "gone"
"""The state of a job that its queue does not know."""
NOT_ASKED = "not submitted by you from here, so its queue is not asked"
"""The state of a job that a run names, and of which nothing here knows."""


@dataclass(frozen=True)
class QueuedJob:
    """A job that some of a run's trials were handed over as, and what its queue says of it."""

    allocation: int
    job: str
    nodes: int
    left: int
    """Trials that it is to run: those of cells that a later job has as well are that one's."""
    state: str = GONE
    """As the queue names it."""
    ended: bool | None = None
    elapsed: str | None = None
    why: str | None = None


@dataclass(frozen=True)
class RunStatus:
    """How far a run is."""

    run: str
    total: int
    """Planned trials."""
    done: int
    """Those of which no further attempt is due."""
    ok: int
    """Those that are done and ended well."""
    left: int
    """Planned trials that are still to be run."""
    attempts: int
    """All that were made at planned trials, with those that were made again."""
    counts: str
    """The same in words."""
    queued: int
    """Jobs in the queue."""
    jobs: tuple[QueuedJob, ...]
    at_work: Holder | None = None
    """The process that carries it out just now."""
    accounts: str | None = None
    """Why the queue's accounts do not tell how jobs ended."""
    damaged: tuple[str, ...] = ()
    """What of its files cannot be read any more."""
    shortcomings: tuple[str, ...] = ()
    """Why it is no success, where nothing is left to run."""
    version: int = 1


@click.command("status")
@click.argument("run", metavar="RUN", shell_complete=completion.runs)
@click.option(
    "--wait",
    is_flag=True,
    help="Come back when no job of it is in the queue, and nobody at work on it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the same as JSON.")
def command(run: str, *, wait: bool, as_json: bool) -> int:
    """Say how far a run is, and what its queue says of it.

    0: nothing is left to run, and the run is a success, as `bakeoff run` would have said; else 1.
    """
    from harness.analysis.read import run_directory
    from harness.errors import Unavailable

    root = run_directory(run)
    status, pause_s = look(root), _FIRST_S
    if wait and _goes_on(status):
        note(f"Waiting for {status.left} of {status.total} trials. Ctrl-C ends the waiting alone.")
    while wait and _goes_on(status):
        time.sleep(pause_s)  # a queue that many ask at once answers nobody
        pause_s = min(pause_s * _GROWTH, _LONGEST_S)
        try:
            status = look(root)
        except Unavailable as problem:
            note(f"{problem}\nStill waiting: it is asked again.")
    status = _judged(root, _accounted(root, status))
    emit(status, lambda: in_words(status), as_json=as_json)
    return 0 if status.left == 0 and not status.shortcomings else 1


def _goes_on(status: RunStatus) -> bool:
    """Tell whether a job is in the queue or, of a run without jobs, somebody at work."""
    return bool(status.queued) or (status.at_work is not None and not status.jobs)


def look(root: Path) -> RunStatus:
    """Ask files and queue once."""
    from harness.run.setup import read_plan
    from harness.run.unattended import queue
    from harness.store.layout import RunPaths
    from harness.store.run_directory import opening
    from harness.store.run_directory.due import read_due

    paths = RunPaths(root)
    submitted = queue.jobs(paths)
    due, holder = read_due(paths), opening.holder(paths)
    left, count = due.left(), due.count()
    own = queue.own_jobs(paths)
    states = queue.states(read_plan(paths).platform, own) if own else {}
    # Those in the queue come last: what a job left that is over, they run.
    waiting_last = sorted(submitted, key=lambda one: one.job in states)
    runs_it = {key: one.number for one in waiting_last for key in one.keys}
    jobs = []
    for one in submitted:
        state = states.get(one.job)
        own_left = sum(left[key] for key in one.keys if runs_it[key] == one.number)
        job = QueuedJob(one.number, one.job, one.nodes, left=own_left)
        if one not in own:
            job = replace(job, state=NOT_ASKED)
        if state is not None:
            job = replace(job, ended=False, state=state.word, elapsed=state.elapsed, why=state.why)
        jobs.append(job)
    return RunStatus(
        run=str(root),
        total=count.total,
        done=count.done,
        ok=count.ok,
        left=count.left,
        attempts=count.attempts,
        counts=str(count),
        at_work=holder,
        queued=len(states),
        jobs=tuple(jobs),
    )


def _judged(root: Path, status: RunStatus) -> RunStatus:
    """Say what of the run is damaged, and what its trials are worth if nobody makes more of them.

    That reads all of them: it is not for every look.
    """
    import_numpy()
    from harness.analysis.analyse import analyse
    from harness.errors import RunError
    from harness.store.dataset import Dataset
    from reports.text.shortcomings import shortcomings

    try:
        dataset = Dataset([root])
        status = replace(status, damaged=dataset.warnings)
        if not (status.left or status.queued or status.at_work is not None):
            told = shortcomings(analyse(dataset), lost=status.total - status.ok)
            status = replace(status, shortcomings=told)
    except RunError as problem:  # what is left can be counted of a run that cannot be read
        status = replace(status, damaged=(*status.damaged, str(problem)))
    return status


def _accounted(root: Path, status: RunStatus) -> RunStatus:
    """Ask the queue's accounts, once, how the jobs ended that it no longer knows."""
    from harness.errors import Unavailable
    from harness.run.setup import read_plan
    from harness.run.unattended import queue
    from harness.store.layout import RunPaths

    paths = RunPaths(root)
    gone = {one.job for one in status.jobs if one.job and one.state == GONE}
    some = [one for one in queue.jobs(paths) if one.job in gone]
    if not some:
        return status
    try:
        ended = queue.ends(read_plan(paths).platform, some)
    except Unavailable as problem:
        return replace(status, accounts=str(problem))
    jobs = []
    for one in status.jobs:
        end = ended.get(one.job) if one.job in gone else None
        if end is not None:
            one = replace(one, ended=True, state=end.word, elapsed=end.elapsed, why=end.why or None)
        jobs.append(one)
    return replace(status, jobs=tuple(jobs))


def in_words(status: RunStatus) -> list[str]:
    """Give the status as lines of text."""
    lines = [f"{status.run}: {status.counts}."]
    lines += [f"  ! {one}" for one in status.damaged]
    for one in status.jobs:
        state = "no longer in the queue" if one.state == GONE else one.state.lower()
        if one.elapsed:
            state += f" {'after' if one.ended else 'for'} {one.elapsed}"
            state += f", {one.why}" if one.why else ""
        nodes, left = counted(one.nodes, "node"), counted(one.left, "trial")
        lines.append(f"  job {one.job or '?'}, {nodes}: {state}; {left} left")
    if status.left and status.accounts:
        lines.append(f"How jobs ended is not known: {status.accounts}")
    if status.at_work is not None:
        lines.append(f"At work on it: {status.at_work}.")
    elif status.left and not status.queued:
        more = " --detach" if status.jobs else ""
        lines.append(f"Nobody is at work on it. To go on: bakeoff resume {status.run}{more}")
    if status.shortcomings:
        lines += [f"  ! {one}" for one in status.shortcomings]
        lines.append(f"Why: bakeoff show {status.run}")
    return lines
