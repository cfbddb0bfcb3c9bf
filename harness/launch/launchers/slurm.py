"""Launch a job under Slurm: inside an allocation with srun, outside through sbatch.

Settings: ``partition``, ``account``, ``qos``, ``constraint``, ``gres``, ``reservation``,
``options`` (further words for sbatch), ``mpi`` (``pmix``, ``pmi2``: srun gives ranks an MPI's
identity; else the agents start them).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from harness.errors import UsageError
from harness.launch import placement
from harness.launch.batch_script import Batch, text
from harness.launch.contract import Launch, Worker
from harness.launch.host_lists import unfolded
from harness.launch.queue_answers import FreeNodes, JobState, NodesOffered
from harness.platform.platform import Platform
from harness.worker.job import Job

_ASKED = ("partition", "account", "qos", "constraint", "gres", "reservation")
SETTINGS = (*_ASKED, "mpi", "options")
EXAMPLES = {
    "partition": ("gpu", "`sinfo` lists them"),
    "account": ("ab123", "whom node-hours are charged to: `sacctmgr show associations user=$USER`"),
    "qos": ("normal", "only where your centre asks for one"),
    "gres": ("gpu:4", "GPUs of each node; without it Slurm gives none: `sinfo -o '%P %G'`"),
    "constraint": ("knl&flat", "features that nodes must have: `sinfo -o '%P %f'`"),
    "mpi": ("pmix", "let srun give ranks an MPI's identity: `srun --mpi=list`"),
}
"""For profiles to fill in: what a setting looks like, and where to find one's own."""
MPI = ("pmi2", "pmix", "pmix_v2", "pmix_v3", "pmix_v4", "pmix_v5", "cray_shasta")
TRIED_ALONE = (*(one for one in _ASKED if one != "partition"), "options")
"""What a queue can refuse of a profile's settings beside the partition."""
JOB_IS_OVER = ("Invalid job id", "already completing or completed")
"""What squeue and scancel say of a job that has ended, or that Slurm knows no more."""
_MOST_RESTARTS = 3
_NO_REASON = "None"
_PAIR = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")
_PARTITION = re.compile(
    r"(?P<name>[^|*]+)(?P<default>\*?)\|(?P<state>\w+)\|(?P<limit>[^|]+)"
    r"\|(?P<allocated>[0-9]{1,9})/(?P<idle>[0-9]{1,9})\|(?P<gres>.*)"
)
_GPUS = re.compile(r"\bgpu(?::[^:,()]+)?:([0-9]{1,4})(?![0-9:])")
_GPUS_A_NODE = re.compile(r"--gpus-per-node[= ](?:[^\s:,=]+:)?([0-9]{1,4})\b")
# A step of its own that takes nothing away from the others of the allocation.
_STEP = ("--overlap", "--cpu-bind=none", "--mem=0", "--export=ALL", "--unbuffered")


def nodes(settings: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Name the nodes of the allocation."""
    del settings  # the allocation alone says so
    listed = environ.get("SLURM_JOB_NODELIST") or environ.get("SLURM_NODELIST")
    if not listed:
        raise UsageError(
            "launcher slurm: this is no allocation. Ask for one, for example: salloc -N 2"
        )
    return unfolded(listed)


def reach(node: str, argv: Sequence[str], settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Give the command that runs another one on a node of the allocation."""
    del settings  # what was asked for stands in the allocation
    return ("srun", "--nodes=1", "--ntasks=1", f"--nodelist={node}", *_STEP, "--mpi=none", *argv)


def launch(job_path: str, job: Job, platform: Platform, worker: Worker) -> Launch:
    """Let the agents start the ranks, or srun where they need an MPI's identity."""
    mpi = platform.launcher.settings.get("mpi")
    if not mpi:
        return placement.lay_out(job_path, job, platform, worker)
    each = job.scale.ranks_per_node
    count = len(worker.nodes)
    starter = (
        "srun",
        f"--nodes={count}",
        f"--ntasks={count * each}",
        f"--ntasks-per-node={each}",
        "--distribution=block",
        f"--nodelist={','.join(node.name for node in worker.nodes)}",
        *_STEP,
        f"--mpi={mpi}",
        "--kill-on-bad-exit=1",
    )
    return placement.lay_out(job_path, job, platform, worker, starter=starter)


def script(batch: Batch, settings: Mapping[str, Any]) -> str:
    """Write the batch script that runs one command on the first node of an allocation."""
    directives = {
        "--job-name=": batch.name,
        "--nodes=": batch.nodes,
        "--time=": batch.minutes,
        "--output=": batch.log,
        "--open-mode=": "append",
        "--exclusive": True,
        "--requeue": True,
        "--array=": f"1-{batch.parts}%1" if batch.parts > 1 else None,
        "--no-kill": True,  # a lost node costs one trial, not the study
        "--signal=": "B:TERM@60",
        **{f"--{key}=": settings.get(key) or None for key in _ASKED},
    }
    return text("#SBATCH", directives, batch.argv, options=settings.get("options"))


def part(environ: Mapping[str, str]) -> int | None:
    """Say which part of a job this is, where it has several."""
    number = environ.get("SLURM_ARRAY_TASK_ID")
    return None if number is None else int(number)


def submit(script_path: str, after: Sequence[str]) -> tuple[str, ...]:
    """Give the command that submits a script behind others of its name; it prints its number."""
    del after  # the name says so
    return ("sbatch", "--parsable", "--dependency=singleton", script_path)


def submitted(printed: str) -> str:
    """Read the number of the job that was submitted, "101;cluster"."""
    return printed.strip().partition(";")[0]


def rehearse(script_path: str) -> tuple[str, ...]:
    """Give the command that judges a script as if it were submitted, and queues nothing."""
    return ("sbatch", "--test-only", script_path)


def partitions() -> tuple[str, ...]:
    """Give the command that prints a line for each kind of node of each partition."""
    return ("sinfo", "--noheader", "--format=%P|%a|%l|%A|%G")


def read_partitions(printed: str) -> tuple[NodesOffered, ...]:
    """Read those lines; what is no such line, a warning, is passed over."""
    lines = (_PARTITION.fullmatch(line.strip()) for line in printed.splitlines())
    return tuple(
        NodesOffered(
            name=found["name"],
            is_default=found["default"] == "*",
            is_up=found["state"] == "up",
            limit_min=_minutes(found["limit"]),
            usable=int(found["allocated"]) + int(found["idle"]),
            idle=int(found["idle"]),
            gpus=sum(int(count) for count in _GPUS.findall(found["gres"])),
        )
        for found in lines
        if found is not None
    )


GPU_SETTING = ("gres", "gpu:{}")


def gpus_asked(settings: Mapping[str, Any]) -> int | None:
    """Count the GPUs of a node that jobs ask for; None where their words say it in another way."""
    gres, options = (str(settings.get(one) or "") for one in ("gres", "options"))
    counts = [*_GPUS.findall(f"{gres} {options}"), *_GPUS_A_NODE.findall(options)]
    if counts:
        return sum(map(int, counts))
    if "gpu" in gres:
        return 1
    return None if re.search(r"gpu|(?:^|\s)-G", options) else 0


def _minutes(limit: str) -> float | None:
    """Read a time as Slurm prints it, "1-12:00:00" or "10:00"; None where there is no limit."""
    days, _, clock = limit.rpartition("-")
    parts = clock.split(":")
    if not all(part.isdigit() for part in parts):
        return None
    seconds = sum(
        int(part) * unit for part, unit in zip(reversed(parts), (1, 60, 3600), strict=False)
    )
    return (int(days or 0) * 86400 + seconds) / 60


def idle(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Give the command that prints how many nodes are allocated and idle, "12/4"."""
    partition = settings.get("partition")
    return ("sinfo", "--noheader", "--format=%A", *([f"--partition={partition}"] * bool(partition)))


def read_idle(printed: str) -> FreeNodes:
    """Read those pairs."""
    pairs = [match.groups() for match in map(_PAIR.fullmatch, printed.split()) if match]
    allocated, idle = (sum(int(pair[at]) for pair in pairs) for at in (0, 1))
    return FreeNodes(idle, allocated + idle)


def state(*jobs: str) -> tuple[str, ...]:
    """Give the command that prints a line for each job still there: number, state, time, why.

    Of one in parts the number is followed by "_" and which of them.
    """
    return ("squeue", "--noheader", "--format=%i %T %M %r", f"--jobs={','.join(jobs)}")


def read_states(printed: str) -> dict[str, JobState]:
    """Read those lines; a job in parts is told by the part that runs."""
    found: dict[str, JobState] = {}
    for line in printed.splitlines():
        if len(words := line.split(maxsplit=3)) < 3:
            continue  # no job's line: a warning, or one that was cut off
        name, word, elapsed, *why = words
        job, _, part = name.partition("_")
        if job not in found or part.isdigit():  # a part that runs says more than those that wait
            found[job] = JobState(word, elapsed, " ".join(why).removeprefix(_NO_REASON))
    return found


def named(name: str) -> tuple[str, ...]:
    """Give the command that prints the jobs of a name."""
    return ("squeue", f"--name={name}")


def ended(*jobs: str) -> tuple[str, ...]:
    """Give the command that prints how jobs ended, if Slurm keeps accounts: number|state|time."""
    words = ("--noheader", "--parsable2", "--allocations", "--format=JobID,State,Elapsed")
    return ("sacct", *words, f"--jobs={','.join(jobs)}")


def read_ends(printed: str) -> dict[str, JobState]:
    """Read those lines; a job in parts ended as the first part that did not complete."""
    found: dict[str, JobState] = {}
    for line in printed.splitlines():
        if line.count("|") != 2:
            continue  # no job's line
        name, word, elapsed = line.split("|")
        job, _, part = name.partition("_")
        before = found.get(job)
        if before is None or before.word == "COMPLETED":
            why = f"part {part}" if part else ""
            found[job] = JobState(word, elapsed, why)  # "CANCELLED by 1000", as Slurm says it
    return found


def requeue(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Give the command that has this process's job start anew; nothing where it often did."""
    job, restarts = environ.get("SLURM_JOB_ID"), int(environ.get("SLURM_RESTART_COUNT") or 0)
    return ("scontrol", "requeue", job) if job and restarts < _MOST_RESTARTS else ()


def cancel(*jobs: str) -> tuple[str, ...]:
    """Give the command that takes jobs back."""
    return ("scancel", *jobs)
