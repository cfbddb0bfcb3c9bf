"""Say what a launcher makes of a job: finished commands, one a rank, nothing started.

A launcher is a module with one constant and three pure functions; without all four it is refused:

    SETTINGS                                   what a profile's launcher.settings may hold
    nodes(settings, environ) -> names          the nodes at hand; "" is this machine
    reach(node, argv, settings) -> argv        what runs a command on one of them, with its input
                                               and output: agents start so, and probes
    launch(job_path, job, platform, worker) -> Launch

It may hold these too:

    EXAMPLES                                   by setting, an example and where to find one's own:
                                               what a profile to fill in shows
    MPI                                        the values of its setting `mpi`
    setting_fault(setting, value) -> str|None  what is wrong with a setting's value; the profile is
                                               refused with it

Those of engines with a queue have these as well. Each asks by a command, and reads what it printed:

    script(batch, settings) -> text            the batch script
    submit(script_path, after) -> argv         submits it behind these jobs of the same run
    submitted(printed) -> number               the job that it became
    state(*jobs), read_states(printed)         jobs that wait or run; JOB_IS_OVER: what this command
                                               and that of cancel say on stderr of other jobs
    ended(*jobs), read_ends(printed)           how jobs ended
    idle(settings), read_idle(printed)         how many nodes are free
    named(name) -> argv                        prints the jobs of a name
    cancel(*jobs) -> argv
    requeue(environ) -> argv                   starts this very job anew; nothing where it cannot

    gpus_asked(settings) -> count              of a node; None where nobody can tell. GPU_SETTING:
                                               the setting that asks for them, and a pattern of it

``part(environ)`` has only slurm, whose job arrays deal blocks over allocations; ``rehearse``,
``partitions`` and ``read_partitions`` too, so that what it would refuse is known before. Of the
others ``queues`` and ``read_queues`` are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from harness.agent.protocol import RankCommand
from harness.machine.topology import Topology

if TYPE_CHECKING:
    from harness.platform.platform import Platform
    from harness.worker.job import Job


@dataclass(frozen=True)
class Node:
    """One machine of an allocation."""

    cpus: tuple[int, ...]
    """The cores this run may use there."""
    ports: tuple[int, ...]
    """Free ports: one for each rank, then the one at which all ranks of a job meet."""
    name: str = ""
    """What the launcher calls it; empty is this machine."""
    address: str = "127.0.0.1"
    """Where other nodes find it."""
    topology: Topology | None = None
    """What its cores make up, where that is known."""


@dataclass(frozen=True)
class Worker:
    """How a rank is started in its framework's interpreter, and what is shared out among ranks."""

    argv: tuple[str, ...]
    """The interpreter; ``-m harness.worker JOB`` follows."""
    env: Mapping[str, str]
    """The environment that every rank begins with."""
    payload: str
    token: str
    nodes: tuple[Node, ...]
    """The nodes of this job, in the order of its ranks."""
    quota: float | None = None
    """CPUs' worth of time that a control group grants this run here; None: no limit is known."""
    shim: tuple[str, ...] = ()
    """What an engine's starter starts for each rank, where it has to."""
    door: str | None = None
    """Where those meet the agents."""


@dataclass(frozen=True)
class Launch:
    """A job as commands."""

    ranks: tuple[RankCommand, ...]
    observers: tuple[int | None, ...]
    """The core that the agent keeps for itself, on each node."""
    marks: tuple[str, ...] = ()
    """What a reader of the trial must know about how it was started."""
    starter: RankCommand | None = None
    """The engine's command that starts a shim for each rank; None: the agents start the ranks."""
    door: str | None = None
    """Where the agents await those shims."""


class Launcher(Protocol):
    """A launcher's module."""

    SETTINGS: Sequence[str]
    launch: Callable[[str, Job, Platform, Worker], Launch]

    def nodes(self, settings: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[str, ...]:
        """Name the nodes at hand."""

    def reach(self, node: str, argv: Sequence[str], settings: Mapping[str, Any]) -> tuple[str, ...]:
        """Give the command that runs another one on a node."""
