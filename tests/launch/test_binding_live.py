"""Ask the kernel where live workers may run: binding is what it says, or nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.agent.protocol import TrialCommand
from harness.launch.contract import Launch, Node, Worker
from harness.launch.launchers.local import launch
from harness.machine.sysfs_topology import read_topology
from harness.machine.topology import MemoryNode, Topology
from harness.platform.platform import Platform
from harness.platform.starting import Binding, Observer
from harness.worker.job import Job, Span
from harness.worker.scale import Scale
from tests.agent.spoken import Agent
from tests.needs import program

CPUS = tuple(sorted(os.sched_getaffinity(0)))
_WAITS = """
import os, signal
os.close(os.open("up." + os.environ["BAKEOFF_RANK"], os.O_WRONLY))
signal.pause()
"""


def live(
    folder: Path, binding: Binding, topology: Topology, look: Callable[[int], Any]
) -> tuple[Launch, dict[int, Any]]:
    """Start two real workers by the local launcher, and look at each."""
    job = Job(
        purpose="trial",
        cell_key="9f3a",
        trial="trial-1",
        workload="nothing",
        workload_module="workloads.nothing",
        framework="null",
        adapter_module="harness.worker.adapters.null",
        environment="null",
        strategy="none",
        scale=Scale(ranks_per_node=2),
        factors={},
        options={},
        warmup=Span(steps=1),
        until=Span(steps=1),
        seed=1,
        directory=str(folder),
    )
    platform = Platform.model_construct(name="here", observer=Observer(cores=0), binding=binding)
    worker = Worker(
        argv=(sys.executable, "-c", _WAITS),
        env=dict(os.environ),
        payload=str(folder),
        token="binding/live/trial-1",
        nodes=(Node(CPUS, (29501, 29502, 29500), topology=topology),),
    )
    launched = launch("job.json", job, platform, worker)
    command = TrialCommand(worker.token, str(folder), launched.ranks, 30.0, 1.0, None, 1024)
    for one in launched.ranks:
        os.mkfifo(folder / f"up.{one.rank}")
    agent = Agent(folder, "-m", "harness.agent")
    try:
        pids = agent.start(command)["pids"]
        for one in launched.ranks:
            (folder / f"up.{one.rank}").read_bytes()  # ends when the worker is up
        seen = {int(rank): look(pid) for rank, pid in pids.items()}
    finally:
        agent.end()
    return launched, seen


@pytest.mark.skipif(len(CPUS) < 2, reason="two ranks need two CPUs")
@pytest.mark.parametrize("policy", ["compact", "none"])
def test_live_workers_may_run_where_the_binding_says(tmp_path: Path, policy: str) -> None:
    launched, seen = live(tmp_path, Binding(policy=policy), read_topology(CPUS), _allowed)
    assert seen == {one.rank: set(one.cpus) for one in launched.ranks}
    if policy == "compact":
        assert not seen[0] & seen[1]
    else:
        assert seen[0] == seen[1] == set(CPUS)


@pytest.mark.engine
@pytest.mark.skipif(len(CPUS) < 2, reason="two ranks need two CPUs")
@pytest.mark.parametrize(
    ("policy", "kernels_word"),
    [
        ("local", "local"),
        ("interleave", "interleave:0"),
        ("fast-only", "bind:0"),
        ("fast-first", "prefer:0"),
    ],
)
def test_live_workers_allocate_from_the_memory_that_the_binding_says(
    tmp_path: Path, policy: str, kernels_word: str
) -> None:
    program("numactl", package="numactl")
    memory = MemoryNode(0, frozenset(CPUS), "HBM")  # what is there stands in for fast memory
    topology = replace(read_topology(CPUS), memories=(memory,))
    launched, seen = live(
        tmp_path, Binding(memory=policy), topology, lambda pid: (_policies(pid), _allowed(pid))
    )
    assert launched.ranks[0].argv[0] == "numactl"
    for one in launched.ranks:
        assert seen[one.rank] == ({kernels_word}, set(one.cpus)), "numactl keeps the CPUs"


def _policies(pid: int) -> set[str]:
    """Read the policy of every mapping (proc_pid_numa_maps(5))."""
    lines = Path(f"/proc/{pid}/numa_maps").read_text().splitlines()
    return {line.split()[1] for line in lines}


def _allowed(pid: int) -> set[int]:
    status = Path(f"/proc/{pid}/status").read_text()
    listed = status.partition("Cpus_allowed_list:")[2].split()[0]
    found: set[int] = set()
    for part in listed.split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found
