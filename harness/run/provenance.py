"""Record where numbers came from: software, source, machine and environment of the host.

What is not known is None. Secrets are taken out of everything before it is written.
"""

from __future__ import annotations

import os
import platform
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness import commands
from harness.doctor import observer_cost
from harness.environments.identity.recorded_environment import redacted
from harness.errors import Unavailable
from harness.machine.machine import Machine, read_machine
from harness.worker.redaction.redact import redact_command, redact_values

VERSION = 1  # 1: first

_GIT_TIMEOUT_S = 5


def provenance(
    project: Path,
    *,
    machine: Machine | None = None,
    environ: Mapping[str, str] = os.environ,
    arguments: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Gather everything that a reader of a result may ask about the host; plain JSON values."""
    return {
        "version": VERSION,
        "wall_ns": time.time_ns(),
        "command": redact_command(sys.argv if arguments is None else arguments),
        "software": software(),
        "source": redact_values(git_state(project)),
        "machine": asdict(machine or read_machine(environ=environ)),
        "environment": redacted(environ),
        "observer_study": observer_cost.latest(),
    }


def software() -> dict[str, Any]:
    """Name the versions of the harness, its Python and its libraries."""
    from importlib import metadata

    try:
        own = metadata.distribution("bakeoff")
    except metadata.PackageNotFoundError:
        return {"bakeoff": None, "python": platform.python_version(), "libraries": {}}
    wanted = (re.match(r"[\w.-]+", text) for text in own.requires or () if "extra ==" not in text)
    return {
        "bakeoff": own.version,
        "python": platform.python_version(),
        "libraries": {name[0]: _version(name[0]) for name in wanted if name is not None},
    }


def git_state(folder: Path) -> dict[str, Any] | None:
    """Name the commit of the folder's repository and whether its files differ; None without one."""
    try:
        answer = commands.run(
            ["git", "-C", str(folder), "status", "--porcelain=v2", "--branch"],
            timeout_s=_GIT_TIMEOUT_S,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
        )
        lines = answer.required().splitlines()
    except Unavailable:
        # No git or repository here, or one on a sleeping file system: the state is unknown.
        return None
    heads = dict(line[2:].partition(" ")[::2] for line in lines if line.startswith("# branch."))
    commit = heads.get("branch.oid")
    return {
        "commit": None if commit == "(initial)" else commit,
        "branch": heads.get("branch.head"),
        "changed": sum(1 for line in lines if line[:1] in "12u"),
        "untracked": sum(1 for line in lines if line.startswith("?")),
    }


def _version(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
