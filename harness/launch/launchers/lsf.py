"""Launch a job inside an LSF allocation; it has not run on a real one yet.

Settings: ``queue``, ``project``, ``options`` (further words for bsub).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.errors import UsageError
from harness.launch.batch_script import Batch, text
from harness.launch.placement import lay_out as launch

__all__ = ["EXAMPLES", "SETTINGS", "launch", "nodes", "reach", "script", "state"]

_ASKED = {"queue": "-q ", "project": "-P "}
SETTINGS = (*_ASKED, "options")
EXAMPLES = {
    "queue": ("batch", "`bqueues` lists them"),
    "project": ("ab123", "whom node-hours are charged to"),
    "options": ("-alloc_flags gpumps", "further words for bsub"),
}
"""For profiles to fill in: what a setting looks like, and where to find one's own."""


def nodes(settings: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Name the nodes of the allocation; the first of several is the one that only launches."""
    del settings  # the allocation alone says so
    hosts = tuple(dict.fromkeys(environ.get("LSB_HOSTS", "").split()))
    if not hosts:
        raise UsageError("launcher lsf: this is no allocation. Ask for one: bsub -Is -nnodes 2")
    return hosts[1:] if len(hosts) > 1 else hosts


def reach(node: str, argv: Sequence[str], settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Give the command that runs another one on a node, through LSF's own daemons."""
    del settings  # what was asked for stands in the allocation
    return ("blaunch", "-no-shell", node, *argv)


def script(batch: Batch, settings: Mapping[str, Any]) -> str:
    """Write the batch script that runs one command where LSF starts batch scripts."""
    directives = {
        "-J ": batch.name,
        "-nnodes ": batch.nodes,
        "-W ": batch.minutes,
        "-o ": batch.log,
        "-r": True,
        **{flag: settings.get(key) or None for key, flag in _ASKED.items()},
    }
    return text("#BSUB", directives, batch.argv, options=settings.get("options"))


def state(job: str) -> tuple[str, ...]:
    """Give the command that prints a job's state."""
    return ("bjobs", "-noheader", "-o", "stat exit_code", job)
