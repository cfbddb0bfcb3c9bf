"""Run one trial on all its nodes at once, and merge their agents' reports into one.

The first that ends badly, falls silent or dies ends the trial on all others at once, and the
outcome names whose rank or node it was.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from harness.agent.protocol import TrialCommand, TrialEnd
from harness.ranks.agent_client import TICK_S, AgentProcess
from harness.ranks.interrupts import Interrupts
from harness.store.outcome import MemoryEvidence


@dataclass(frozen=True)
class AgentLost:
    """An agent was lost: how its ranks ended is unknown."""

    nodes: str
    said: str = ""
    """What they said of it themselves, and where."""


class NodeTrial:
    """One node's part of a trial."""

    def __init__(
        self, node: str, agent: AgentProcess, core: int | None, command: TrialCommand
    ) -> None:
        self.node = node
        self.agent = agent
        self.command = command
        self.end: TrialEnd | None = None
        """None until it has ended, and for good if its agent was lost."""
        self._core = core

    def run(self, interrupts: Interrupts, on_tick: Callable[[], None]) -> None:
        """Run the ranks on this node to their end."""
        self.end = self.agent.run(
            self.command, core=self._core, interrupts=interrupts, on_tick=on_tick
        )

    @property
    def is_well(self) -> bool:
        """Whether the other nodes may go on."""
        end = self.end
        return end is not None and end.cause == "ended" and all(r.exit_code == 0 for r in end.ranks)


def run(
    parts: Sequence[NodeTrial], *, interrupts: Interrupts, on_tick: Callable[[], None]
) -> TrialEnd | AgentLost:
    """Run a trial on all its nodes to its end."""
    first: NodeTrial | None = None
    if len(parts) == 1:
        parts[0].run(interrupts, on_tick)
    else:
        first = _run_at_once(parts, interrupts, on_tick)
    ends = [part.end for part in parts if part.end is not None]
    if len(ends) < len(parts):
        lost = [part.node or part.agent.host for part in parts if part.end is None]
        said = [part.agent.complaint for part in parts if part.end is None]
        return AgentLost(" and ".join(lost), " ".join(filter(None, said)))
    if len(ends) == 1:
        return ends[0]
    guilty = first.end if first is not None else None
    return _joined(ends, guilty, [part.agent.host for part in parts])


def _run_at_once(
    parts: Sequence[NodeTrial], interrupts: Interrupts, on_tick: Callable[[], None]
) -> NodeTrial | None:
    """Wait for each node in a thread; give the node whose ranks ended the others, if any."""
    stops = [_Stop() for _ in parts]
    done: queue.Queue[NodeTrial] = queue.Queue()
    for part, stop in zip(parts, stops, strict=True):
        threading.Thread(target=_follow, args=(part, stop, done), daemon=True).start()
    first: NodeTrial | None = None
    passed = 0
    left = len(parts)
    while left:
        with suppress(queue.Empty):
            part = done.get(timeout=TICK_S)
            left -= 1
            if first is None and not part.is_well:
                first = part
                for stop in stops:
                    stop.ask()
        while passed < interrupts.count:
            passed += 1
            for stop in stops:
                stop.ask()
        on_tick()
    for stop in stops:
        stop.close()
    return first


def _follow(part: NodeTrial, stop: _Stop, done: queue.Queue[NodeTrial]) -> None:
    try:
        part.run(stop, lambda: None)
    finally:
        done.put(part)


class _Stop(Interrupts):
    """Asks one agent to end its trial, as a signal asks the host."""

    def __init__(self) -> None:
        super().__init__()
        self.open()

    def ask(self) -> None:
        """Wake the agent's thread with one more request to stop."""
        self.count += 1
        self._writer.send(b"!")


def _joined(ends: Sequence[TrialEnd], first: TrialEnd | None, hosts: Sequence[str]) -> TrialEnd:
    """Merge the reports of several agents; ``first`` is the one that ended the others."""
    memories = [end.memory for end in ends]
    unobserved = [
        f"{host}: {end.unobserved}" for host, end in zip(hosts, ends, strict=True) if end.unobserved
    ]
    return TrialEnd(
        token=ends[0].token,
        cause=_cause(first),
        ranks=tuple(sorted((rank for end in ends for rank in end.ranks), key=lambda r: r.rank)),
        memory=MemoryEvidence(
            how=memories[0].how,
            limit_bytes=memories[0].limit_bytes,
            peak_bytes=max((m.peak_bytes for m in memories if m.peak_bytes), default=None),
            oom_kills=_sum(m.oom_kills for m in memories),
        ),
        leftovers=sum(end.leftovers for end in ends),
        survivors=sum(end.survivors for end in ends),
        started_wall_ns=min(end.started_wall_ns for end in ends),
        ended_wall_ns=max(end.ended_wall_ns for end in ends),
        unobserved="; ".join(unobserved) or None,
        stand_ins=tuple(dict.fromkeys(one for end in ends for one in end.stand_ins)),
        waits=tuple(one for end in ends for one in end.waits),
    )


def _cause(first: TrialEnd | None) -> str:
    """Give the cause of the trial's end.

    A node's last rank that fails leaves no rank there to stop, so its agent reports plain "ended";
    on the other nodes ranks were stopped because of it.
    """
    if first is None:
        return "ended"
    return "rank-failed" if first.cause == "ended" else first.cause


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
