"""Launch a job inside a PBS allocation; it has not run on a real one yet.

Settings: ``queue``, ``account``, ``place``, ``options`` (further words for qsub).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.errors import UsageError
from harness.launch.batch_script import Batch, text
from harness.launch.placement import lay_out as launch

__all__ = ["EXAMPLES", "SETTINGS", "launch", "nodes", "reach", "script", "state"]

_ASKED = {"queue": "-q ", "account": "-A "}
SETTINGS = (*_ASKED, "place", "options")
EXAMPLES = {
    "queue": ("workq", "`qstat -Q` lists them"),
    "account": ("ab123", "whom node-hours are charged to"),
    "place": ("scatter:excl", "one chunk a node, and nobody beside it"),
    "options": ("-l filesystems=home:scratch", "further words for qsub"),
}
"""For profiles to fill in: what a setting looks like, and where to find one's own."""
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


def script(batch: Batch, settings: Mapping[str, Any]) -> str:
    """Write the batch script that runs one command on the first node of an allocation."""
    directives = {
        "-N ": batch.name,
        "-l select=": batch.nodes,
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


def state(job: str) -> tuple[str, ...]:
    """Give the command that prints a job's state."""
    return ("qstat", "-x", "-f", "-F", "json", job)
