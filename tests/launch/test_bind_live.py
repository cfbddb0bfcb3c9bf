"""This file asks the kernel where live workers may run: binding is what it says, or nothing."""

from __future__ import annotations

import os
import selectors
import sys
from pathlib import Path

import pytest

from harness.agent.protocol import RankCommand, TrialCommand
from harness.agent.trial import RunningTrial
from harness.launch.launch import Node, Worker
from harness.launch.launchers.local import launch
from harness.node.job import Job, Span
from harness.run.probe_topology import read_topology
from harness.spec.platform import Binding, Observer, Platform

CPUS = tuple(sorted(os.sched_getaffinity(0)))
_WAITS = "import signal; signal.pause()"


@pytest.mark.skipif(len(CPUS) < 2, reason="two ranks need two CPUs")
@pytest.mark.parametrize("policy", ["compact", "none"])
def test_live_workers_may_run_where_the_binding_says(tmp_path: Path, policy: str) -> None:
    job = Job(
        purpose="trial",
        cell_key="9f3a",
        trial="trial-1",
        workload="nothing",
        workload_module="workloads.nothing",
        framework="null",
        adapter_module="harness.node.adapters.null",
        strategy="none",
        factors={"ranks_per_node": 2},
        options={},
        warmup=Span(steps=1),
        until=Span(steps=1),
        seed=1,
        directory=str(tmp_path),
    )
    platform = Platform.model_construct(
        name="here", observer=Observer(cores=0), binding=Binding(policy=policy)
    )
    worker = Worker(
        argv=(sys.executable, "-c", _WAITS),
        env=dict(os.environ),
        payload=str(tmp_path),
        token="binding/live/trial-1",
        nodes=(Node(CPUS, (29501, 29502, 29500), topology=read_topology(CPUS)),),
    )
    launched = launch("job.json", job, platform, worker)
    ranks = tuple(
        RankCommand(
            rank=one.rank,
            argv=one.argv,
            env=one.env,
            cwd=one.cwd,
            cpus=one.cpus,
            stdout=str(tmp_path / f"{one.rank}.out"),
            stderr=str(tmp_path / f"{one.rank}.err"),
        )
        for one in launched.ranks
    )
    command = TrialCommand(worker.token, ranks, 30.0, 1.0, None, 1024)
    with selectors.DefaultSelector() as selector:
        trial = RunningTrial(command, selector)
        try:
            seen = {rank: _allowed(pid) for rank, pid in trial.pids.items()}
        finally:
            trial.stop("cancel", 0.0)
            while not trial.is_over:
                for key, _ in selector.select():
                    key.data()
            trial.close()
    assert seen == {one.rank: set(one.cpus) for one in launched.ranks}
    if policy == "compact":
        assert not seen[0] & seen[1]
    else:
        assert seen[0] == seen[1] == set(CPUS)


def _allowed(pid: int) -> set[int]:
    status = Path(f"/proc/{pid}/status").read_text()
    listed = status.partition("Cpus_allowed_list:")[2].split()[0]
    found: set[int] = set()
    for part in listed.split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found
