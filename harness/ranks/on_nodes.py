"""Run one trial on its nodes at once, and make one report of their agents'.

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
class Lost:
    """An agent was lost: nobody can say how its ranks ended."""

    nodes: str


class Part:
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
        """Run it to its end."""
        self.end = self.agent.run(
            self.command, core=self._core, interrupts=interrupts, on_tick=on_tick
        )

    @property
    def is_well(self) -> bool:
        """Whether the other nodes may go on."""
        end = self.end
        return end is not None and end.cause == "ended" and all(r.exit_code == 0 for r in end.ranks)


def run(
    parts: Sequence[Part], *, interrupts: Interrupts, on_tick: Callable[[], None]
) -> TrialEnd | Lost:
    """Run all parts to their ends."""
    first: Part | None = None
    if len(parts) == 1:
        parts[0].run(interrupts, on_tick)
    else:
        first = _run_at_once(parts, interrupts, on_tick)
    ends = [part.end for part in parts if part.end is not None]
    if len(ends) < len(parts):
        lost = [part.node or part.agent.host for part in parts if part.end is None]
        return Lost(" and ".join(lost))
    if len(ends) == 1:
        return ends[0]
    guilty = first.end if first is not None else None
    return _joined(ends, guilty, [part.agent.host for part in parts])


def _run_at_once(
    parts: Sequence[Part], interrupts: Interrupts, on_tick: Callable[[], None]
) -> Part | None:
    """Follow each part by a thread that sleeps; give the one that ended the others, if any."""
    stops = [_Stop() for _ in parts]
    done: queue.Queue[Part] = queue.Queue()
    for part, stop in zip(parts, stops, strict=True):
        threading.Thread(target=_follow, args=(part, stop, done), daemon=True).start()
    first: Part | None = None
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


def _follow(part: Part, stop: _Stop, done: queue.Queue[Part]) -> None:
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
        """Ask once more."""
        self.count += 1
        self._writer.send(b"!")


def _joined(ends: Sequence[TrialEnd], first: TrialEnd | None, hosts: Sequence[str]) -> TrialEnd:
    """Make one testimony of several; ``first`` is the one that ended the others."""
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
    """Say why the trial ended; the last rank of a node ends nobody there, but elsewhere."""
    if first is None:
        return "ended"
    return "rank-failed" if first.cause == "ended" else first.cause


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
