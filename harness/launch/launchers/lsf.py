"""Launch a job inside an LSF allocation; it has not run on a real one yet.

Settings: ``queue``, ``project``, ``slots`` (of a node; absent: IBM's CSM gives whole nodes),
``gpu``, ``options`` (further words for bsub).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.errors import Unavailable, UsageError
from harness.launch import placement
from harness.launch.batch_script import Batch, text
from harness.launch.queue_answers import (
    FreeNodes,
    JobState,
    QueueOffered,
    printed_json,
    text_of,
)

_ASKED = {"queue": "-q ", "project": "-P ", "gpu": "-gpu "}
SETTINGS = (*_ASKED, "slots", "options")
EXAMPLES = {
    "queue": ("batch", "`bqueues` lists them"),
    "project": ("ab123", "whom node-hours are charged to"),
    "slots": ("48", "of each node, `bhosts`; leave it out where `bsub -nnodes` works (IBM's CSM)"),
    "gpu": ("num=4", "GPUs of each node; leave it out with CSM, which gives all: `lshosts -gpu`"),
    "options": ("-alloc_flags gpumps", "further words for bsub"),
}
"""For profiles to fill in: what a setting looks like, and where to find one's own."""

JOB_IS_OVER = (
    *("is not found", "No matching job found", "No unfinished job found"),
    "Job has already finished",
)
"""What bjobs and bkill say of a job that has ended, or that LSF knows no more."""
_ENDED = ("DONE", "EXIT")
_WORDS = {
    "PEND": "PENDING",
    "PROV": "STARTING",
    "PSUSP": "HELD",
    "RUN": "RUNNING",
    "SSUSP": "SUSPENDED",
    "UNKWN": "UNKNOWN",
    "USUSP": "SUSPENDED",
    "WAIT": "WAITING",
    "ZOMBI": "ZOMBIE",
}
_IN_USE = ("ok", "closed_Full", "closed_Excl", "closed_Busy", "closed_cu_Excl")
"""What bhosts calls hosts in service: with room, or taken."""
_COUNT = re.compile(r"[1-9][0-9]{0,4}")
_GPUS = re.compile(r"\bnum=([0-9]{1,4})(?:/host)?(?![/0-9])")
_FIELDS = "jobid stat exit_code run_time pend_reason exit_reason"


def nodes(settings: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Name the nodes of the allocation; the first of several of CSM's is one that only launches."""
    hosts = tuple(dict.fromkeys(environ.get("LSB_HOSTS", "").split()))
    if not hosts:
        raise UsageError("launcher lsf: this is no allocation. Ask for one: bsub -Is -nnodes 2")
    return hosts[1:] if len(hosts) > 1 and not settings.get("slots") else hosts


def reach(node: str, argv: Sequence[str], settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Give the command that runs another one on a node, through LSF's own daemons."""
    del settings  # what was asked for stands in the allocation
    return ("blaunch", "-no-shell", node, *argv)


launch = placement.lay_out


def script(batch: Batch, settings: Mapping[str, Any]) -> str:
    """Write the batch script that runs one command where LSF starts batch scripts."""
    directives = {
        "-J ": batch.name,
        **_nodes_asked(batch.nodes, settings.get("slots")),
        "-W ": batch.minutes,
        "-o ": batch.log,
        "-r": True,
        **{flag: settings.get(key) or None for key, flag in _ASKED.items()},
    }
    return text("#BSUB", directives, batch.argv, options=settings.get("options"))


def _nodes_asked(count: int, slots: str | None) -> dict[str, Any]:
    """Ask for whole nodes: as CSM's, or as so many slots of each, with nobody beside."""
    if not slots:
        return {"-nnodes ": count}
    return {"-n ": count * int(slots), "-R ": f"span[ptile={slots}]", "-x": True}


def setting_fault(setting: str, value: str) -> str | None:
    """Say what is wrong with a setting's value."""
    if setting == "slots" and value and not _COUNT.fullmatch(value):
        return f"'{value}' is no number of slots, which `bhosts` lists under MAX"
    return None


def submit(script_path: str, after: Sequence[str]) -> tuple[str, ...]:
    """Give the command that submits a script behind other jobs, however those end.

    bsub reads a script's directives from its standard input only.
    """
    waits = ("-w", " && ".join(f"ended({job})" for job in after)) if after else ()
    return ("sh", "-c", 'exec "$@" <"$0"', script_path, "bsub", *waits)


def submitted(printed: str) -> str:
    """Read the number of the job that was submitted: "Job <1234> is submitted to …"."""
    match = re.search(r"^Job <([0-9]+)> is submitted", printed, re.MULTILINE)
    return match[1] if match else ""


def state(*jobs: str) -> tuple[str, ...]:
    """Give the command that prints jobs, be they over lately."""
    return ("bjobs", "-a", "-json", "-o", _FIELDS, *jobs)


def read_states(printed: str) -> dict[str, JobState]:
    """Read those that wait or run."""
    return {
        number: JobState(_WORDS.get(word, word), _elapsed(row), text_of(row, "PEND_REASON"))
        for number, word, row in _jobs(printed)
        if word not in _ENDED
    }


ended = state


def read_ends(printed: str) -> dict[str, JobState]:
    """Read how those ended that LSF still knows, by their exit code."""
    found = {}
    for number, word, row in _jobs(printed):
        if word == "DONE":
            found[number] = JobState("COMPLETED", _elapsed(row), "")
        elif word == "EXIT":
            code = text_of(row, "EXIT_CODE")
            why = text_of(row, "EXIT_REASON") or (f"exit code {code}" if code else "")
            found[number] = JobState("FAILED", _elapsed(row), why)
    return found


def _jobs(printed: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Give the number, the state and the fields of each job that bjobs printed."""
    # it may have waited for its server, and said so
    told = printed_json(printed[max(printed.find("{"), 0) :], "bjobs")
    if told is None:
        return
    rows = told.get("RECORDS") if isinstance(told, dict) else None
    if not isinstance(rows, list):
        raise Unavailable("bjobs printed JSON without RECORDS.")
    for row in rows:
        if isinstance(row, dict) and text_of(row, "JOBID").isdecimal() and text_of(row, "STAT"):
            yield text_of(row, "JOBID"), text_of(row, "STAT"), row


def _elapsed(row: Mapping[str, Any]) -> str:
    """Write "3725 second(s)" as a clock does; older versions print one."""
    told = text_of(row, "RUN_TIME")
    match = re.fullmatch(r"([0-9]{1,9}) second\(s\)", told)
    if match is None:
        return told or "0:00"
    minutes, seconds = divmod(int(match[1]), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"


def idle(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Give the command that prints every host; LSF does not say which serve a queue."""
    del settings
    return ("bhosts", "-w")


def read_idle(printed: str) -> FreeNodes:
    """Count hosts by the columns of that table: host, status, JL/U, MAX, NJOBS, …."""
    rows = [words for line in printed.splitlines()[1:] if len(words := line.split()) >= 6]
    usable = [row for row in rows if row[1] in _IN_USE]
    return FreeNodes(sum(row[1] == "ok" and row[4] == "0" for row in usable), len(usable))


def queues() -> tuple[str, ...]:
    """Give the command that prints every queue."""
    return ("bqueues", "-w")


def read_queues(printed: str) -> tuple[QueueOffered, ...]:
    """Read the columns of that table: queue, priority, status, …."""
    rows = [words for line in printed.splitlines()[1:] if len(words := line.split()) >= 12]
    return tuple(QueueOffered(row[0], is_up=row[2] == "Open:Active") for row in rows)


GPU_SETTING = ("gpu", "num={}")


def gpus_asked(settings: Mapping[str, Any]) -> int | None:
    """Count the GPUs of a node that jobs ask for; None where CSM gives whole nodes."""
    asked = settings.get("gpu")
    if not asked:
        return 0 if settings.get("slots") else None
    counts = _GPUS.findall(asked)
    return int(counts[0]) if counts else None


def named(name: str) -> tuple[str, ...]:
    """Give the command that prints the jobs of a name."""
    return ("bjobs", "-J", name)


def requeue(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Give no command: LSF tells no job how often it was started anew, so it might be for ever."""
    del environ
    return ()


def cancel(*jobs: str) -> tuple[str, ...]:
    """Give the command that takes jobs back."""
    return ("bkill", *jobs)
