"""This file launches a job inside a PBS allocation; it has not run on a real one yet.

Settings: ``queue``, ``account``, ``place``, ``options`` (further words for qsub).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from harness.errors import UsageError
from harness.launch.placement import lay_out as launch

__all__ = ["SETTINGS", "cancel", "launch", "nodes", "reach", "script", "state", "submit"]

_ASKED = {"queue": "-q", "account": "-A"}
SETTINGS = (*_ASKED, "place", "options")


def nodes(settings: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Name the nodes of the allocation: its script puts PBS_NODEFILE's lines in BAKEOFF_HOSTS."""
    del settings  # the allocation alone says so
    listed = environ.get("BAKEOFF_HOSTS")
    if not listed:
        raise UsageError("launcher pbs: this is no allocation. Ask for one: qsub -I -l select=2")
    return tuple(dict.fromkeys(listed.split()))


def reach(node: str, argv: Sequence[str], settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Give the command that runs another one on a node, through PBS's own daemons."""
    del settings  # what was asked for stands in the allocation
    return ("pbs_tmrsh", node, *argv)


def script(
    argv: Sequence[str],
    settings: Mapping[str, Any],
    *,
    name: str,
    count: int,
    minutes: int,
    log: str,
) -> str:
    """Write the batch script that runs one command on the first node of an allocation."""
    lines = [
        "#!/bin/sh",
        f"#PBS -N {name}",
        f"#PBS -l select={count}",
        f"#PBS -l walltime={minutes // 60:02d}:{minutes % 60:02d}:00",
        f"#PBS -l place={settings.get('place') or 'scatter:excl'}",
        f"#PBS -j oe -o {log}",
        "#PBS -r y",
    ]
    lines += [f"#PBS {flag} {settings[key]}" for key, flag in _ASKED.items() if settings.get(key)]
    lines += [f"#PBS {settings['options']}"] if settings.get("options") else []
    hosts = "export BAKEOFF_HOSTS=\"$(sort -u $PBS_NODEFILE | tr '\\n' ' ')\""
    return "\n".join([*lines, hosts, f"exec {shlex.join(argv)}", ""])


def submit(script_path: str) -> tuple[str, ...]:
    """Give the command that submits a script; it prints the job's number."""
    return ("qsub", script_path)


def state(job: str) -> tuple[str, ...]:
    """Give the command that prints a job's state."""
    return ("qstat", "-x", "-f", "-F", "json", job)


def cancel(job: str) -> tuple[str, ...]:
    """Give the command that ends a job."""
    return ("qdel", job)
