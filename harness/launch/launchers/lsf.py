"""This file launches a job inside an LSF allocation; it has not run on a real one yet.

Settings: ``queue``, ``project``, ``options`` (further words for bsub).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from harness.errors import UsageError
from harness.launch.placement import lay_out as launch

__all__ = ["SETTINGS", "cancel", "launch", "nodes", "reach", "script", "state", "submit"]

_ASKED = {"queue": "-q", "project": "-P"}
SETTINGS = (*_ASKED, "options")


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


def script(
    argv: Sequence[str],
    settings: Mapping[str, Any],
    *,
    name: str,
    count: int,
    minutes: int,
    log: str,
) -> str:
    """Write the batch script that runs one command where LSF starts batch scripts."""
    lines = [
        "#!/bin/sh",
        f"#BSUB -J {name}",
        f"#BSUB -nnodes {count}",
        f"#BSUB -W {minutes}",
        f"#BSUB -o {log}",
        "#BSUB -r",
    ]
    lines += [f"#BSUB {flag} {settings[key]}" for key, flag in _ASKED.items() if settings.get(key)]
    lines += [f"#BSUB {settings['options']}"] if settings.get("options") else []
    return "\n".join([*lines, f"exec {shlex.join(argv)}", ""])


def submit(script_path: str) -> tuple[str, ...]:
    """Give the command that submits a script, through a shell: bsub reads its input."""
    return ("sh", "-c", 'bsub < "$0"', script_path)


def state(job: str) -> tuple[str, ...]:
    """Give the command that prints a job's state."""
    return ("bjobs", "-noheader", "-o", "stat exit_code", job)


def cancel(job: str) -> tuple[str, ...]:
    """Give the command that ends a job."""
    return ("bkill", job)
