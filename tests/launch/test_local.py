from __future__ import annotations

import dataclasses
import json

from harness.launch.contract import Node, Worker
from harness.launch.launchers.local import launch
from harness.machine.topology import Core, Device, MemoryNode, Topology
from harness.platform.platform import Platform
from harness.platform.starting import Binding, Observer
from harness.worker.job import Job, Span
from harness.worker.scale import Scale


def job(ranks: int) -> Job:
    return Job(
        purpose="trial",
        cell_key="9f3a",
        trial="trial-3",
        workload="tinycnn",
        workload_module="workloads.tinycnn",
        framework="torch",
        adapter_module="harness.worker.adapters.torch.adapter",
        environment="torch",
        strategy="ddp",
        scale=Scale(ranks_per_node=ranks),
        factors={},
        options={},
        warmup=Span(steps=20),
        until=Span(seconds=60.0),
        seed=1,
        directory="/runs/one/cells/9f3a/trial-3",
    )


WORKER = Worker(
    argv=("/envs/torch/bin/python", "-X", "dev"),
    env={"HOME": "/home/ada", "PATH": "/usr/bin"},
    payload="/runs/one/payload",
    token="one-1f/9f3a/trial-3",
    nodes=(Node(cpus=(0, 1, 2, 3, 8, 9, 10, 11, 12), ports=(29501, 29502, 29500)),),
)


def on(topology: Topology) -> Worker:
    node = Node(cpus=topology.cpus, ports=(29501, 29502, 29500), topology=topology)
    return dataclasses.replace(WORKER, nodes=(node,))


PLATFORM = Platform.model_construct(
    name="here", title="here", environment={"OMP_PROC_BIND": "close"}, observer=Observer()
)


def test_local_ranks_are_processes_that_meet_on_the_given_port(golden):
    made = launch("/runs/one/cells/9f3a/trial-3/job.json", job(2), PLATFORM, WORKER)
    golden("launch/local.json", json.dumps(dataclasses.asdict(made), indent=1) + "\n")


def test_what_was_made_of_a_platform_s_variables_is_not_undone_by_them():
    made = {"PATH": "/envs/torch/bin:/theirs", "LD_PRELOAD": "libjemalloc.so /theirs.so"}
    stated = {"PATH": "/theirs", "LD_PRELOAD": "/theirs.so", "OMP_NUM_THREADS": "3"}
    platform = PLATFORM.model_copy(update={"environment": stated})
    worker = dataclasses.replace(WORKER, env={**WORKER.env, **made})
    (rank,) = launch("j", job(1), platform, worker).ranks
    assert {name: rank.env[name] for name in made} == made
    assert rank.env["OMP_NUM_THREADS"] == "3", "the platform's word goes before the planner's"


def test_ranks_on_gpus_all_see_them_in_the_order_of_the_ranks():
    cores = tuple(Core((cpu,), package=cpu // 2, l2=cpu) for cpu in range(4))
    memories = (MemoryNode(0, frozenset({0, 1})), MemoryNode(1, frozenset({2, 3})))
    devices = (Device(0, frozenset({2, 3})), Device(1, frozenset({0, 1})))
    worker = on(Topology(cores, memories, devices))
    made = launch("j", dataclasses.replace(job(2), factors={"device": "gpu"}), PLATFORM, worker)
    assert [rank.env["CUDA_VISIBLE_DEVICES"] for rank in made.ranks] == ["1,0", "1,0"]
    assert [rank.env["BAKEOFF_DEVICES"] for rank in made.ranks] == ["1", "0"]
    assert set(made.ranks[0].cpus) <= {0, 1}, "each rank is near its own"
    assert set(made.ranks[1].cpus) <= {2, 3}


def test_ranks_without_gpus_are_observed_without_the_nodes_gpus():
    one = dataclasses.replace(job(1), factors={"device": "cpu"})
    (rank,) = launch("j", one, PLATFORM, WORKER).ranks
    assert rank.env["BAKEOFF_DEVICES"] == ""
    assert "CUDA_VISIBLE_DEVICES" not in rank.env


def test_what_the_platform_sets_for_its_ranks_wins_over_what_binding_chose():
    binding = Binding(threads="pinned")
    platform = PLATFORM.model_copy(update={"binding": binding})
    made = launch("j", job(2), platform, WORKER)
    assert made.ranks[0].env["OMP_PROC_BIND"] == "close"
    assert made.ranks[0].env["OMP_PLACES"] == "{0},{1},{2},{3}"
    assert made.ranks[0].env["OMP_NUM_THREADS"] == "4"


def test_a_memory_policy_starts_the_rank_through_numactl():
    memories = (
        MemoryNode(0, frozenset(range(4)), "DDR"),
        MemoryNode(1, frozenset(range(4)), "MCDRAM"),
    )
    topology = Topology(tuple(Core((cpu,), l2=cpu) for cpu in range(4)), memories)
    worker = on(topology)
    platform = PLATFORM.model_copy(update={"binding": Binding(memory="fast-first")})
    made = launch("j", job(1), platform, worker)
    assert made.ranks[0].argv[:3] == ("numactl", "--preferred=1", "--")


def test_a_quota_lowers_the_threads_of_ranks_that_nobody_pins():
    made = launch("j", job(2), PLATFORM, dataclasses.replace(WORKER, quota=4.5))
    assert len(made.ranks[0].cpus) == 4
    assert {rank.env["BAKEOFF_THREADS"] for rank in made.ranks} == {"2"}
    assert {rank.env["OMP_NUM_THREADS"] for rank in made.ranks} == {"2"}
    assert "4.5 CPUs' worth on 8 CPUs" in made.marks[0]
