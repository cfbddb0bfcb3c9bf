"""Submit a run to a queue, read the state of its jobs, and cancel them.

The jobs of a run work on one directory, so the queue runs them one after another: each waits for
those before it. Each is `bakeoff resume` for its own cells: killed, requeued or run into its time
limit, it loses the trial that was running and no other.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness import commands, plugins, private_file
from harness.commands import Unanswered
from harness.errors import RunError, Unavailable, UsageError
from harness.launch.batch_script import Batch
from harness.launch.queue_answers import FreeNodes, JobState
from harness.plan.allocations import Allocation
from harness.platform.platform import Platform
from harness.run import trust
from harness.run.unattended.resume_command import resume_command
from harness.store.layout import RunPaths
from harness.store.run_directory.identity import identity, is_copy
from harness.store.typed import damage, read
from harness.worker.redaction.redact import redact_text

VERSION = 1  # 1: first
_PATIENCE_S = 60.0
_JOB = re.compile(r"(?:[0-9]+(?:_[0-9]+)?)?", re.ASCII)
"""It becomes a word of the queue's commands, where `--user=me` would cancel everything."""


@dataclass(frozen=True)
class JobInQueue:
    """A job submitted to the queue."""

    number: int
    """Within the run."""
    job: str
    """What the queue calls it; empty where it was not heard of in time."""
    nodes: int
    minutes: int
    keys: tuple[str, ...]
    parts: int = 1
    """Over how many allocations its blocks are dealt."""


@dataclass(frozen=True)
class _JobsFile:
    """What jobs.json holds."""

    jobs: tuple[JobInQueue, ...]


def has_queue(platform: Platform) -> bool:
    """Whether a platform's jobs wait in a queue, be it one that Bakeoff submits to or not."""
    return hasattr(plugins.load("launchers", platform.launcher.name), "script")


def queue_of(platform: Platform) -> Any:
    """Load the launcher whose queue a platform has; refuse one that Bakeoff cannot submit to."""
    launcher = plugins.load("launchers", platform.launcher.name)
    if not hasattr(launcher, "submit"):
        raise UsageError(
            f"{platform.name}: Bakeoff cannot submit through the launcher "
            f"'{platform.launcher.name}'. It can through slurm, pbs and lsf."
        )
    return launcher


def submit(
    paths: RunPaths, platform: Platform, wanted: Sequence[Allocation]
) -> tuple[JobInQueue, ...]:
    """Submit a job for each allocation, after those that the run has had."""
    launcher, name = queue_of(platform), f"bakeoff-{identity(paths).id}"
    known = list(jobs(paths))
    first = len(known)
    for allocation in wanted:
        number = len(known) + 1
        batch = job_batch(paths, allocation, number, name)
        script = paths.job_script(number)
        paths.files.make_folder(script.parent)
        paths.files.remove(paths.job_log(number))  # the queue would follow a link
        text = launcher.script(batch, platform.launcher.settings)
        paths.files.write(script, redact_text(text))
        # The job may start before its number is known: what it runs must be there already.
        one = JobInQueue(number, "", batch.nodes, batch.minutes, allocation.keys, allocation.parts)
        _record(paths, [*known, one])
        try:
            job = _submitted(launcher, script, text, [one.job for one in known[first:]])
        except Unanswered as problem:  # what is recorded may be started yet
            look = shlex.join(launcher.named(name))
            raise Unavailable(
                f"{problem}\nJob {number} may be in the queue all the same: {look}\n"
                "Let what is there end, or take it back by its number; then submit what is left: "
                f"bakeoff resume {paths.root} --detach"
            ) from problem
        except Unavailable as problem:
            _record(paths, known)
            raise Unavailable(f"{problem}\n{_so_far(paths, known[first:])}") from problem
        trust.remember_job(paths, job)
        known.append(replace(one, job=job))
        _record(paths, known)
    return tuple(known[first:])


def job_batch(paths: RunPaths, allocation: Allocation, number: int, name: str) -> Batch:
    """Give what the queue is asked to run for an allocation of a run."""
    return Batch(
        argv=resume_command(paths, "--allocation", str(number)),
        name=name,
        nodes=allocation.nodes,
        minutes=allocation.minutes,
        log=str(paths.job_log(number)),
        parts=allocation.parts,
    )


def planned_scripts(
    root: Path, platform: Platform, wanted: Sequence[Allocation]
) -> tuple[str, ...]:
    """Write the scripts that a run not made yet would submit; its id and digests come with it."""
    launcher, paths = queue_of(platform), RunPaths(root)
    return tuple(
        redact_text(
            launcher.script(
                job_batch(paths, one, number, "bakeoff-RUN"), platform.launcher.settings
            )
        )
        for number, one in enumerate(wanted, 1)
    )


def _submitted(launcher: Any, script: Path, text: str, after: Sequence[str]) -> str:
    """Submit a job's script, its secrets through a private file; give the job's number."""
    if redact_text(text) == text:
        answer = _asked(launcher.submit(str(script), after))
    else:
        open_file = f"/proc/self/fd/{private_file.NUMBER}"
        answer = _asked(launcher.submit(open_file, after), private=text)
    job: str = launcher.submitted(answer)
    if not job or not _JOB.fullmatch(job):
        raise Unanswered(f"The queue answered {answer.strip()!r:.200}, which names no job.")
    return job


def _so_far(paths: RunPaths, submitted: Sequence[JobInQueue]) -> str:
    """Report the jobs submitted before a failure, and how to go on."""
    again = f"bakeoff resume {paths.root} --detach"
    if not submitted:
        return f"Nothing was submitted. When that is mended: {again}"
    return (
        f"In the queue already: {', '.join(one.job for one in submitted)}. Let them end, or take "
        f"them back (bakeoff cancel {paths.root}); then submit what is left: {again}"
    )


def jobs(paths: RunPaths) -> tuple[JobInQueue, ...]:
    """Give all jobs ever submitted for a run; those in a copy's files are its original's."""
    if not paths.files.exists(paths.jobs) or is_copy(paths):
        return ()
    raw = paths.files.read_object(paths.jobs)
    with damage(paths.jobs):
        found = read(_JobsFile, raw).jobs
        for one in found:
            if not _JOB.fullmatch(one.job):
                raise ValueError(f"{one.job!r:.80} is no number of a job, nor of a part of one")
        return found


def own_jobs(paths: RunPaths) -> tuple[JobInQueue, ...]:
    """Give a run's jobs that this user submitted: jobs.json may name anybody's."""
    return tuple(one for one in jobs(paths) if not one.job or trust.knows_job(paths, one.job))


def require_own_jobs(paths: RunPaths, platform: Platform) -> tuple[JobInQueue, ...]:
    """Give all jobs of a run; refuse where it names one that this user did not submit from here."""
    found, own = jobs(paths), own_jobs(paths)
    strange = [one.job for one in found if one not in own]
    if strange:
        launcher = queue_of(platform)
        raise RunError(
            f"{paths.jobs}: nothing here says that you submitted these jobs for this run: "
            f"{', '.join(strange)}. They are left alone. See whose they are: "
            f"{shlex.join(launcher.state(*strange))}\n"
            f"Take back by hand what you know as this run's (`{shlex.join(launcher.cancel())}` and "
            f"its number). To go on without them, remove {paths.jobs}."
        )
    return found


def job(paths: RunPaths, number: int) -> JobInQueue:
    """Give one job of a run."""
    for one in jobs(paths):
        if one.number == number:
            return one
    raise UsageError(f"{paths.root}: this run has no allocation {number}.")


def free(platform: Platform) -> FreeNodes:
    """Ask the queue once how many of the nodes that a platform may use are idle."""
    launcher = queue_of(platform)
    found: FreeNodes = launcher.read_idle(_asked(launcher.idle(platform.launcher.settings)))
    return found


def part(platform: Platform, one: JobInQueue) -> int | None:
    """Give the number of this process's part of a job array; None outside one."""
    if one.parts == 1:
        return None
    found: int | None = queue_of(platform).part(os.environ)
    return found


def states(platform: Platform, some: Sequence[JobInQueue]) -> Mapping[str, JobState]:
    """Ask the queue once about several jobs; one that it no longer knows is left out."""
    names = [one.job for one in some if one.job]
    if not names:
        return {}
    launcher = queue_of(platform)
    said = _asked(launcher.state(*names), unless=launcher.JOB_IS_OVER)
    found: dict[str, JobState] = launcher.read_states(said)
    return {name: found[name] for name in names if name in found}


def ends(platform: Platform, some: Sequence[JobInQueue]) -> Mapping[str, JobState]:
    """Ask the queue's accounts once how jobs ended; refuse where it keeps none."""
    launcher = queue_of(platform)
    found: dict[str, JobState] = launcher.read_ends(
        _asked(launcher.ended(*(one.job for one in some)), unless=launcher.JOB_IS_OVER)
    )
    return found


def requeue(platform: Platform, say: Callable[[], None]) -> bool:
    """Have the queue start this very job once more, on nodes that work; tell whether it will.

    It ends this process in doing so: what there is to ``say`` is said before.
    """
    again = queue_of(platform).requeue(os.environ)
    if again:
        say()
        _asked(again)
    return bool(again)


def cancel(platform: Platform, some: Sequence[JobInQueue]) -> None:
    """Cancel jobs, unless they ended meanwhile; the trials that they finished stay."""
    launcher = queue_of(platform)
    argv = launcher.cancel(*(one.job for one in some if one.job))
    answer = commands.run(argv, timeout_s=_PATIENCE_S)
    said = answer.stderr.splitlines()
    if not (said and all(_says(line, launcher.JOB_IS_OVER) for line in said)):
        answer.required()


def _record(paths: RunPaths, known: Sequence[JobInQueue]) -> None:
    jobs = [asdict(one) for one in known]
    paths.files.write_json(paths.jobs, {"version": VERSION, "jobs": jobs})


def _asked(argv: Sequence[str], *, unless: Sequence[str] = (), private: str = "") -> str:
    """Run one of the queue's commands and give what it printed; refuse where it failed.

    ``unless`` it says one of these, which is an answer.
    """
    answer = commands.run(argv, timeout_s=_PATIENCE_S, private=private)
    return answer.stdout if _says(answer.stderr, unless) else answer.required()


def _says(text: str, some: Sequence[str]) -> bool:
    return any(one in text for one in some)
