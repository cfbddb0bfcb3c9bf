"""Lay a job's ranks out over the nodes of an allocation: the same for every launcher.

With a ``starter`` (mpirun, srun) the ranks are not started by the agents on their own account: the
starter starts one shim a rank, which gives its agent the identity that the MPI gave it and waits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from harness.launch.binding import Binding, bind
from harness.launch.binding_request import variables as device_variables
from harness.launch.binding_request import wish
from harness.launch.container import inside
from harness.launch.contract import Launch, Node, Rank, Worker
from harness.launch.rendezvous import Seat, seats, variables
from harness.machine.topology import flat
from harness.platform.platform import Platform
from harness.study.framework import framework_info
from harness.study.matrix import adapter_of
from harness.worker.job import Job

DOOR = "BAKEOFF_DOOR"
"""Variable that leads a shim to the agent of its node: a name in the abstract socket space."""


def lay_out(
    job_path: str,
    job: Job,
    platform: Platform,
    worker: Worker,
    *,
    starter: Sequence[str] = (),
) -> Launch:
    """Place every rank of a job on its node, bound and with what it needs to find the others."""
    each = int(job.factors.get("ranks_per_node") or 1)
    bindings = [_binding(job, platform, worker, node) for node in worker.nodes]
    ranks = []
    for seat in seats(len(worker.nodes), each):
        binding = bindings[seat.node]
        rank = _rank(job_path, job, platform, worker, seat, binding, has_mpi=bool(starter))
        share = binding.shares[seat.local_rank]
        ranks.append(inside(platform, job, rank, worker.payload, share.devices))
    marks = dict.fromkeys(mark for binding in bindings for mark in binding.marks)
    return Launch(
        ranks=tuple(ranks),
        observers=tuple(binding.observer for binding in bindings),
        marks=tuple(marks),
        starter=(*starter, *worker.shim) if starter else (),
        door=door(worker.token) if starter else None,
    )


def door(token: str) -> str:
    """Name the socket at which an agent awaits a trial's shims."""
    return f"bakeoff-{hashlib.sha256(token.encode()).hexdigest()[:16]}"


def _binding(job: Job, platform: Platform, worker: Worker, node: Node) -> Binding:
    topology = flat(node.cpus) if node.topology is None else node.topology
    wanted = wish(platform, job.factors, devices=len(topology.devices), quota=worker.quota)
    return bind(topology.within(node.cpus), wanted)


def _rank(
    job_path: str,
    job: Job,
    platform: Platform,
    worker: Worker,
    seat: Seat,
    binding: Binding,
    *,
    has_mpi: bool,
) -> Rank:
    share = binding.shares[seat.local_rank]
    each = len(binding.shares)
    framework = framework_info(adapter_of(job.framework))
    own = framework.rank_variables(job.strategy, has_mpi=has_mpi)
    return Rank(
        rank=seat.rank,
        argv=share.memory.wrap((*worker.argv, "-m", "harness.worker", job_path)),
        env={
            **worker.env,
            "PYTHONPATH": worker.payload,
            "BAKEOFF_TOKEN": worker.token,
            **variables(seat, worker.nodes, each, own, threads=share.threads),
            **device_variables(share, binding.shares, job.factors),
            **platform.environment,
        },
        cwd=job.directory,
        cpus=share.cpus,
        node=seat.node,
    )
