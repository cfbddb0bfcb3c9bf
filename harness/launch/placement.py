"""Lay a job's ranks out over the nodes of an allocation: the same for every launcher.

With a ``starter`` (mpirun, srun) the ranks are not started by the agents on their own account: the
starter starts one shim a rank, which gives its agent the identity that the MPI gave it and waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.agent.protocol import STARTER, RankCommand
from harness.agent.shim import DOOR
from harness.launch.binding import Binding, bind
from harness.launch.binding_request import variables as device_variables
from harness.launch.binding_request import wish
from harness.launch.container.command import ContainerCommand, box_of
from harness.launch.contract import Launch, Node, Worker
from harness.launch.rendezvous import Seat, seats, variables
from harness.machine.topology import flat
from harness.platform.platform import Platform
from harness.platform.variables import SEARCH_PATH, laid_over
from harness.study.framework import framework_info
from harness.study.framework_variables import Variables
from harness.study.matrix import adapter_of
from harness.worker.job import Job


def lay_out(
    job_path: str,
    job: Job,
    platform: Platform,
    worker: Worker,
    *,
    starter: Sequence[str] = (),
) -> Launch:
    """Place every rank of a job on its node, bound and with what it needs to find the others."""
    bindings = [_binding(job, platform, worker, node) for node in worker.nodes]
    box = box_of(platform, job, worker.payload)
    framework = framework_info(adapter_of(job.framework))
    own = framework.rank_variables(job.strategy, job.factors, has_mpi=bool(starter))
    layout = _Layout(job_path, job, platform, worker, box, own)
    marks = dict.fromkeys(mark for binding in bindings for mark in binding.marks)
    return Launch(
        ranks=tuple(
            layout.rank(seat, bindings[seat.node])
            for seat in seats(len(worker.nodes), job.scale.ranks_per_node)
        ),
        observers=tuple(binding.observer for binding in bindings),
        marks=tuple(marks),
        starter=_starter(job, platform, worker, starter) if starter else None,
        door=worker.door if starter else None,
    )


def _binding(job: Job, platform: Platform, worker: Worker, node: Node) -> Binding:
    topology = flat(node.cpus) if node.topology is None else node.topology
    wanted = wish(
        platform, job.scale, job.factors, devices=len(topology.devices), quota=worker.quota
    )
    return bind(topology.within(node.cpus), wanted)


@dataclass(frozen=True)
class _Layout:
    """What all ranks of a job have in common."""

    job_path: str
    job: Job
    platform: Platform
    worker: Worker
    box: ContainerCommand | None
    own: Variables
    """Those by which its framework's ranks find each other."""

    def rank(self, seat: Seat, binding: Binding) -> RankCommand:
        """Build one rank from the inside out: worker, container, memory policy."""
        worker, share = self.worker, binding.shares[seat.local_rank]
        python = worker.argv if self.box is None else self.box.python
        each = len(binding.shares)
        rank = RankCommand(
            rank=seat.rank,
            argv=(*python, "-m", "harness.worker", self.job_path),
            env=self._environment(
                {
                    **variables(seat, worker.nodes, each, self.own, threads=share.threads),
                    **device_variables(share, binding.shares, self.job.factors),
                }
            ),
            cwd=self.job.directory,
            cpus=share.cpus,
            node=seat.node,
        )
        if self.box is not None:
            rank = self.box.wrap(rank, share)
        return replace(rank, argv=share.memory.wrap(rank.argv))

    def _environment(self, planned: Mapping[str, str]) -> dict[str, str]:
        """Lay what is planned for a rank over its worker's, under what the platform says of it.

        The worker's was made of what the platform states: its PATH leads to an environment too.
        """
        stated = self.platform.variables(self.job.environment)
        return laid_over(
            stated,
            self.worker.env,
            {"BAKEOFF_TOKEN": self.worker.token},
            {name: stated.get(name, value) for name, value in planned.items()},
            {SEARCH_PATH: self.worker.payload},
        )


def _starter(job: Job, platform: Platform, worker: Worker, starter: Sequence[str]) -> RankCommand:
    """Start the engine's own command beside the first node's ranks."""
    assert worker.door is not None, "whoever gives a shim says where it meets the agent"
    return RankCommand(
        rank=STARTER,
        argv=(*starter, *worker.shim),
        env=laid_over(
            platform.variables(job.environment),
            worker.env,
            {"BAKEOFF_TOKEN": worker.token, DOOR: worker.door},
        ),
        cwd=job.directory,
        cpus=worker.nodes[0].cpus,
    )
