"""This file launches a job on this machine: N processes that find each other on a given port."""

from __future__ import annotations

from harness.launch.bind import bind
from harness.launch.container import inside
from harness.launch.launch import Launch, Rank, Worker
from harness.launch.topology import flat
from harness.launch.wishes import variables, wish
from harness.node.job import Job
from harness.spec.platform import Platform

_LOOPBACK = "127.0.0.1"


def launch(job_path: str, job: Job, platform: Platform, worker: Worker) -> Launch:
    """Start every rank of a job as a process of this machine."""
    size = job.factors["ranks_per_node"]
    topology = flat(worker.cpus) if worker.topology is None else worker.topology
    wanted = wish(platform, job.factors, devices=len(topology.devices), quota=worker.quota)
    binding = bind(topology.within(worker.cpus), wanted)
    shared = {
        **worker.env,
        "PYTHONPATH": worker.payload,
        "BAKEOFF_TOKEN": worker.token,
        "BAKEOFF_SIZE": str(size),
        "BAKEOFF_LOCAL_SIZE": str(size),
        "MASTER_ADDR": _LOOPBACK,
        "MASTER_PORT": str(worker.port),
    }
    ranks = (
        Rank(
            rank=rank,
            argv=share.memory.wrap((*worker.argv, "-m", "harness.node", job_path)),
            env={
                **shared,
                **variables(share, binding.shares),
                **platform.environment,
                "BAKEOFF_RANK": str(rank),
                "BAKEOFF_LOCAL_RANK": str(rank),
            },
            cwd=job.directory,
            cpus=share.cpus,
        )
        for rank, share in enumerate(binding.shares)
    )
    placed = tuple(
        inside(platform, job, rank, worker.payload, share.devices)
        for rank, share in zip(ranks, binding.shares, strict=True)
    )
    return Launch(placed, binding.observer, binding.marks)
