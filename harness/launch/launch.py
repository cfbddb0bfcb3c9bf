"""This file says what a launcher makes of a job: finished commands, one a rank, nothing started.

A launcher is a module with a pure function, ``launch(job_path, job, platform, worker) -> Launch``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.launch.topology import Topology


@dataclass(frozen=True)
class Worker:
    """How a rank is started in its framework's interpreter, and what is shared out among ranks."""

    argv: tuple[str, ...]
    """The interpreter; ``-m harness.node JOB`` follows."""
    env: Mapping[str, str]
    """The environment that every rank begins with."""
    payload: str
    token: str
    port: int
    """A free port of the first node, on which the ranks find each other."""
    cpus: tuple[int, ...]
    """The cores this run may use."""
    topology: Topology | None = None
    """What those cores make up, where that is known."""
    quota: float | None = None
    """CPUs' worth of time that a control group grants this run here; None: no limit is known."""


@dataclass(frozen=True)
class Rank:
    """One rank, ready for an agent."""

    rank: int
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    cpus: tuple[int, ...]
    host: str | None = None
    """None is this machine."""


@dataclass(frozen=True)
class Launch:
    """A job as commands."""

    ranks: tuple[Rank, ...]
    observer: int | None
    """The core that the agent keeps for itself."""
    marks: tuple[str, ...] = ()
    """What a reader of the trial must know about how it was started."""
