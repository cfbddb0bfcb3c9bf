"""Run commands on nodes that a launcher reaches: to probe them, to build for them.

A login node may differ from the compute nodes in architecture, Python and network; what has to be
known or done there is done there, through the launcher's way of starting agents.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness import commands, plugins
from harness.commands import Answer
from harness.errors import UsageError
from harness.platform import platform as platforms

_TIMEOUT_S = 120.0
# srun reads these outside of an allocation (srun(1), INPUT ENVIRONMENT VARIABLES).
_SLURM = ("partition", "account", "qos", "constraint", "gres", "reservation")


@dataclass(frozen=True)
class RemoteNode:
    """One node that a launcher reaches."""

    name: str
    """What the launcher calls it; empty is this machine."""
    launcher: str
    settings: Mapping[str, Any]
    reach: Callable[[str, Sequence[str], Mapping[str, Any]], Sequence[str]]

    def __str__(self) -> str:
        return self.name or "this machine"

    def run(self, *argv: str, timeout_s: float = _TIMEOUT_S) -> str:
        """Run a command there and give what it printed."""
        return self.ask(*argv, timeout_s=timeout_s).required()

    def ask(self, *argv: str, timeout_s: float = _TIMEOUT_S) -> Answer:
        """Run a command there and give how it ended."""
        return commands.run(
            [*self.reach(self.name, argv, self.settings)],
            timeout_s=timeout_s,
            env=self._environment(),
            what=f"{self} ({self.launcher}): {argv[0]}",
        )

    def _environment(self) -> dict[str, str]:
        """Tell srun what to ask for; inside of an allocation, that was asked already."""
        if "SLURM_JOB_ID" in os.environ:
            return dict(os.environ)
        asked = {
            f"SLURM_{key.upper()}": str(self.settings[key])
            for key in _SLURM
            if self.settings.get(key)
        }
        return {**asked, **os.environ}


def through(ref: str, nodes: str | None) -> list[RemoteNode]:
    """Name the nodes that a launcher reaches; a platform's name gives its launcher's settings too.

    ``nodes`` is a list such as ``n1,n2`` or ``cn[01-04]``; without it, what the launcher has at
    hand: the profile's hosts, or the allocation that this process is in.
    """
    from harness.launch.host_lists import unfolded

    launchers = plugins.modules("launchers")
    if ref in launchers:
        name, settings = ref, dict[str, Any]()
    elif ref.endswith(".toml") or ref in platforms.platform_names():
        launcher = platforms.load_platform(ref).launcher
        name, settings = launcher.name, dict[str, Any](launcher.settings)
    else:
        raise UsageError(
            f"'{ref}' is neither a launcher nor a platform.\n"
            f"    Launchers: {', '.join(sorted(launchers))}."
        )
    module = plugins.load("launchers", name)
    names = unfolded(nodes) if nodes is not None else module.nodes(settings, os.environ)
    if nodes is not None and "hosts" not in settings and not hasattr(module, "script"):
        settings["hosts"] = nodes  # an engine with a queue knows its nodes by itself
    return [RemoteNode(one, name, settings, module.reach) for one in names]
