"""Carry a launched job out: the command for each node's agent, and how its ranks ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from harness.agent.protocol import TrialCommand, TrialEnd
from harness.launch.contract import Launch, Node, Worker
from harness.ranks.failure_reasons import Judgement, judge
from harness.ranks.interrupts import Interrupts
from harness.ranks.nodes import Nodes
from harness.ranks.on_nodes import AgentLost
from harness.store.events.rank_tail import read_rank_tail
from harness.store.layout import TrialPaths

_GRACE_S = 5.0
_OUTPUT_BYTES = 1 << 20


@dataclass(frozen=True)
class Assignment:
    """A launched job, with the limits that its agents hold it to."""

    trial: TrialPaths
    worker: Worker
    launch: Launch
    timeout_s: float
    memory_bytes: int | None = None
    observe: Mapping[str, float] | None = None
    """Readings per second by source, where not as it says itself; None: nothing is observed."""
    turns: bool = False
    """Whether it takes turns with other trials."""


def commands(job: Assignment) -> list[tuple[Node, int | None, TrialCommand]]:
    """Give for every node the core that its agent runs on, and the agent's command."""
    return [
        (node, job.launch.observers[index], _command(job, index))
        for index, node in enumerate(job.worker.nodes)
    ]


def _command(job: Assignment, node: int) -> TrialCommand:
    return TrialCommand(
        token=job.worker.token,
        directory=str(job.trial.root),
        ranks=tuple(rank for rank in job.launch.ranks if rank.node == node),
        timeout_s=job.timeout_s,
        grace_s=_GRACE_S,
        memory_bytes=job.memory_bytes,
        output_bytes=_OUTPUT_BYTES,
        observe=job.observe,
        door=job.launch.door,
        starter=job.launch.starter if node == 0 else None,
        turns=job.turns,
        # Some network file systems number a folder otherwise on each node.
        inode=None if job.worker.nodes[node].name else job.trial.files.inode(job.trial.root),
        job=sha256(job.trial.files.read_bytes(job.trial.job)).hexdigest(),
    )


def carry_out(
    job: Assignment, nodes: Nodes, *, interrupts: Interrupts, on_tick: Callable[[], None]
) -> tuple[TrialEnd | AgentLost, Judgement]:
    """Run a job's ranks to their ends; give the agents' reports and the judgement on them."""
    end = nodes.run(commands(job), interrupts=interrupts, on_tick=on_tick)
    return end, judged(job, end)


def judged(job: Assignment, end: TrialEnd | AgentLost) -> Judgement:
    """Judge how a job ended, by what its agents report and its ranks said last."""
    tails = {rank.rank: read_rank_tail(job.trial, rank.rank) for rank in job.launch.ranks}
    return judge(end, tails, trial=job.trial, timeout_s=job.timeout_s)
