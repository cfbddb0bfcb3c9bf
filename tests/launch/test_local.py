from __future__ import annotations

import dataclasses
import json

import pytest

from harness.launch.bind import MORE_RANKS_THAN_CORES, SHARED_WITH_OBSERVER, bind
from harness.launch.launch import Worker
from harness.launch.launchers.local import launch
from harness.node.job import Job, Span
from harness.spec.platform import Observer, Platform


def job(ranks: int) -> Job:
    return Job(
        purpose="trial",
        cell_key="9f3a",
        trial="trial-3",
        workload="tinycnn",
        workload_module="workloads.tinycnn",
        framework="torch",
        adapter_module="harness.node.adapters.torch.adapter",
        strategy="ddp",
        factors={"nodes": 1, "ranks_per_node": ranks},
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
    port=29500,
    cpus=(0, 1, 2, 3, 8, 9, 10, 11, 12),
)


def test_local_ranks_are_processes_that_meet_on_the_given_port(golden):
    platform = Platform.model_construct(
        name="here", title="here", environment={"OMP_PROC_BIND": "close"}, observer=Observer()
    )
    made = launch("/runs/one/cells/9f3a/trial-3/job.json", job(2), platform, WORKER)
    golden("launch/local.json", json.dumps(dataclasses.asdict(made), indent=1) + "\n")


def test_three_cpus_leave_one_to_the_observer():
    assert bind((4, 5, 6), 1).observer == 6
    assert bind((4, 5, 6), 1).ranks == ((4, 5),)
    assert bind((4, 5, 6), 1).marks == ()


@pytest.mark.parametrize("cpus", [(0,), (0, 1)])
def test_two_cpus_are_shared_with_the_observer_and_the_trial_says_so(cpus):
    assert bind(cpus, 1).observer is None
    assert bind(cpus, 1).ranks == (cpus,)
    assert bind(cpus, 1).marks == (SHARED_WITH_OBSERVER,)


def test_a_platform_may_keep_no_core_or_several_for_its_observer():
    assert bind(range(8), 1, keep=0).ranks == (tuple(range(8)),)
    assert bind(range(8), 1, keep=2).ranks == (tuple(range(6)),)
    assert bind(range(8), 1, keep=2).observer == 7


def test_ranks_get_equal_shares_and_the_remainder_stays_idle():
    assert bind(range(8), 2).ranks == ((0, 1, 2), (3, 4, 5))


def test_more_ranks_than_cores_share_all_of_them_and_the_trial_says_so():
    binding = bind((0, 1), 4)
    assert binding.ranks == ((0, 1),) * 4
    assert binding.marks == (SHARED_WITH_OBSERVER, MORE_RANKS_THAN_CORES)
