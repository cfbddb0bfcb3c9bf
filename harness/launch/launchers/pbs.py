"""Launch a job inside a PBS allocation; it has not run on a real one yet.

Settings: ``queue``, ``account``, ``chunk`` (what is asked for of each node), ``place``, ``options``
(further words for qsub).
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

_ASKED = {"queue": "-q ", "account": "-A "}
SETTINGS = (*_ASKED, "chunk", "place", "options")
EXAMPLES = {
    "queue": ("workq", "`qstat -Q` lists them"),
    "account": ("ab123", "whom node-hours are charged to"),
    "chunk": ("ncpus=64:ngpus=4", "of each node; without it PBS gives one core and no GPU"),
    "place": ("scatter:excl", "one chunk a node, and nobody beside it"),
    "options": ("-l filesystems=home:scratch", "further words for qsub"),
}
"""For profiles to fill in: what a setting looks like, and where to find one's own."""
JOB_IS_OVER = ("Unknown Job Id", "Job has finished", "Request invalid for state of job")
"""What qstat and qdel say of a job that has ended or is about to, or that PBS knows no more."""
_WORDS = {
    "B": "BEGUN",
    "E": "EXITING",
    "H": "HELD",
    "M": "MOVED",
    "Q": "QUEUED",
    "R": "RUNNING",
    "S": "SUSPENDED",
    "T": "MOVING",
    "U": "SUSPENDED",
    "W": "WAITING",
}
_ENDED = ("F", "X")
_BY_SIGNAL = 256
"""What PBS adds to the number of a signal that ended a job (pbs_job_attributes(7B))."""
_GPUS = re.compile(r"\bngpus=([0-9]{1,4})\b")
_CLOCK = re.compile(r"([0-9]{1,6}):([0-9]{2}):([0-9]{2})")
_OUT_OF_SERVICE = ("down", "offline", "unknown", "stale", "unresolvable", "provisioning")
_HOSTS = "BAKEOFF_HOSTS=\"$(sort -u \"$PBS_NODEFILE\" | tr '\\n' ' ')\""


def nodes(settings: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Name the nodes of the allocation: its script puts PBS_NODEFILE's lines in BAKEOFF_HOSTS."""
    del settings  # the allocation alone says so
    listed = environ.get("BAKEOFF_HOSTS")
    if not listed:
        raise UsageError(
            "launcher pbs: no nodes are named. In an allocation (qsub -I -l select=2):\n"
            f"    export {_HOSTS}"
        )
    return tuple(dict.fromkeys(listed.split()))


def reach(node: str, argv: Sequence[str], settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Give the command that runs another one on a node, through PBS's own daemons."""
    del settings  # what was asked for stands in the allocation
    return ("pbs_tmrsh", node, *argv)


launch = placement.lay_out


def script(batch: Batch, settings: Mapping[str, Any]) -> str:
    """Write the batch script that runs one command on the first node of an allocation."""
    directives = {
        "-N ": batch.name,
        "-l select=": ":".join(filter(None, (str(batch.nodes), settings.get("chunk")))),
        "-l walltime=": f"{batch.minutes // 60:02d}:{batch.minutes % 60:02d}:00",
        "-l place=": settings.get("place") or "scatter:excl",
        "-j oe -o ": batch.log,
        "-r y": True,
        **{flag: settings.get(key) or None for key, flag in _ASKED.items()},
    }
    return text(
        "#PBS",
        directives,
        batch.argv,
        options=settings.get("options"),
        before=(f"export {_HOSTS}",),
    )


def submit(script_path: str, after: Sequence[str]) -> tuple[str, ...]:
    """Give the command that submits a script behind other jobs, however those end."""
    waits = ("-W", f"depend=afterany:{':'.join(after)}") if after else ()
    return ("qsub", *waits, script_path)


def submitted(printed: str) -> str:
    """Read the number of the job that was submitted, "1234.server"."""
    match = re.search(r"^([0-9]+)(?:\.[A-Za-z0-9.-]*)?$", printed.strip(), re.MULTILINE)
    return match[1] if match else ""


def state(*jobs: str) -> tuple[str, ...]:
    """Give the command that prints jobs that wait or run."""
    return ("qstat", "-f", "-F", "json", *jobs)


def read_states(printed: str) -> dict[str, JobState]:
    """Read them; one that has finished is none of them."""
    return {
        number: JobState(_WORDS.get(letter, letter), _elapsed(job), text_of(job, "comment"))
        for number, letter, job in _jobs(printed)
        if letter not in _ENDED
    }


def ended(*jobs: str) -> tuple[str, ...]:
    """Give the command that prints how jobs ended, for as long as the server keeps it."""
    return ("qstat", "-x", "-f", "-F", "json", *jobs)


def read_ends(printed: str) -> dict[str, JobState]:
    """Read how they ended, by their exit status."""
    found = {}
    for number, letter, job in _jobs(printed):
        if letter not in _ENDED:
            continue
        status = job.get("Exit_status")
        if not isinstance(status, int):
            word, why = "ENDED", text_of(job, "comment")
        elif status > _BY_SIGNAL:
            word, why = "KILLED", f"by signal {status - _BY_SIGNAL}"
        else:
            word, why = ("FAILED", f"exit status {status}") if status else ("COMPLETED", "")
        found[number] = JobState(word, _elapsed(job), why)
    return found


def _jobs(printed: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Give the number, the state's letter and the attributes of each job that qstat printed."""
    for name, job in _table(printed, "qstat", "Jobs").items():
        number, letter = name.partition(".")[0], job.get("job_state")
        if number.isdecimal() and isinstance(letter, str):
            yield number, letter, job


def _table(printed: str, program: str, key: str) -> Mapping[str, Mapping[str, Any]]:
    """Read a table of the JSON that PBS prints; where there is nothing in it, it is left out."""
    told = printed_json(printed, program)
    if told is None:
        return {}
    table = told.get(key, {}) if isinstance(told, dict) else None
    if not isinstance(table, dict):
        raise Unavailable(f"{program} printed JSON without a table of {key}.")
    return {name: row for name, row in table.items() if isinstance(row, dict)}


def _elapsed(job: Mapping[str, Any]) -> str:
    used = job.get("resources_used")
    return (text_of(used, "walltime") if isinstance(used, dict) else "") or "0:00"


def idle(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Give the command that prints every node; PBS does not say which serve a queue."""
    del settings
    return ("pbsnodes", "-a", "-F", "json")


def read_idle(printed: str) -> FreeNodes:
    """Count machines: each may be several of PBS's nodes, of which none may be out of service."""
    states: dict[str, set[str]] = {}
    for name, node in _table(printed, "pbsnodes", "nodes").items():
        jobs = {"has jobs"} if node.get("jobs") else set()
        machine = text_of(node, "Mom") or name
        states.setdefault(machine, set()).update(text_of(node, "state").split(","), jobs)
    usable = [
        words
        for words in states.values()
        if not any(bad in word for word in words for bad in _OUT_OF_SERVICE)
    ]
    return FreeNodes(sum(words == {"free"} for words in usable), len(usable))


def queues() -> tuple[str, ...]:
    """Give the command that prints every queue."""
    return ("qstat", "-Q", "-f", "-F", "json")


def read_queues(printed: str) -> tuple[QueueOffered, ...]:
    """Read them, and how long their jobs may take."""
    return tuple(
        QueueOffered(
            name,
            is_up=(text_of(row, "enabled"), text_of(row, "started")) == ("True", "True"),
            limit_min=_limit_min(row.get("resources_max")),
        )
        for name, row in _table(printed, "qstat", "Queue").items()
    )


def _limit_min(most: Any) -> float | None:
    match = _CLOCK.fullmatch(text_of(most, "walltime")) if isinstance(most, dict) else None
    if match is None:
        return None
    hours, minutes, seconds = map(int, match.groups())
    return 60 * hours + minutes + seconds / 60


GPU_SETTING = ("chunk", "ngpus={}")


def gpus_asked(settings: Mapping[str, Any]) -> int:
    """Count the GPUs of a node that jobs ask for."""
    return sum(map(int, _GPUS.findall(str(settings.get("chunk") or ""))))


def setting_fault(setting: str, value: str) -> str | None:
    """Say what is wrong with a setting's value: PBS takes one `select` alone, which is ours."""
    words = value.split()
    if setting == "options" and any(one.startswith(("select=", "ngpus=")) for one in words):
        return "what jobs ask of each node goes into the setting 'chunk', as \"ncpus=64:ngpus=4\""
    return None


def named(name: str) -> tuple[str, ...]:
    """Give the command that prints the numbers of the jobs of a name."""
    return ("qselect", "-N", name)


def requeue(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Give no command: only those who run a PBS may start a job anew."""
    del environ
    return ()


def cancel(*jobs: str) -> tuple[str, ...]:
    """Give the command that takes jobs back."""
    return ("qdel", *jobs)
