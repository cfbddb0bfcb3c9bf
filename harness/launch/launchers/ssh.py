"""Launch a job over ssh: an agent on each host, which starts that host's ranks.

Settings: ``hosts`` (``h1,h2`` or ``cn[01-04]``), ``command`` (``ssh``, with its own options).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from harness.errors import UsageError
from harness.launch import placement
from harness.launch.host_lists import unfolded

SETTINGS = ("hosts", "command")

# A host that was switched off is noticed after fifteen seconds.
_OPTIONS = ("-o", "BatchMode=yes", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3")


def setting_fault(setting: str, value: str) -> str | None:
    """Say what is wrong with a setting's value, if anything is."""
    try:
        if setting == "hosts" and value:
            unfolded(value)
        elif setting in ("command", "ssh"):
            shlex.split(value)
    except UsageError as fault:
        return str(fault)
    except ValueError as fault:
        return f"{value!r} cannot be split into words as a shell does: {fault}"
    return None


def nodes(settings: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Name the hosts at hand."""
    del environ  # the profile alone says so
    if not settings.get("hosts"):
        raise UsageError('launcher ssh: no hosts; in the platform: settings = { hosts = "h1,h2" }')
    return unfolded(str(settings["hosts"]))


def reach(node: str, argv: Sequence[str], settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Give the command that runs another one on a host, with its input and output."""
    command = shlex.split(str(settings.get("command") or "ssh"))
    return (*command, *_OPTIONS, node, f"exec {shlex.join(argv)}")


launch = placement.lay_out
