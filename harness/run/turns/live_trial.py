"""One trial that lives beside others: warmed up, given its turns, ended."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.agent.protocol import TrialEnd, read_end
from harness.ranks.agent_client import AgentProcess
from harness.ranks.commands import commands, judged
from harness.ranks.interrupts import Interrupts
from harness.ranks.on_nodes import AgentLost
from harness.run.trials.trial import BegunTrial, conclude_trial
from harness.store.layout import TrialPaths
from harness.store.outcome import Outcome, TurnsRecord
from harness.worker.job import Span


class LiveTrial:
    """A trial on this machine, with an agent of its own."""

    def __init__(self, begun: BegunTrial, agent: AgentProcess, interrupts: Interrupts) -> None:
        self._begun = begun
        self._agent = agent
        self._interrupts = interrupts
        self._end: TrialEnd | AgentLost | None = None
        self.step_s = 0.0
        self.at_work_s = 0.0

    @property
    def key(self) -> str:
        """Its cell's key."""
        return self._begun.prepared.cell.key

    @property
    def name(self) -> str:
        """Its own name."""
        return str(self._begun.name)

    @property
    def paths(self) -> TrialPaths:
        """Its directory."""
        return self._begun.paths

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended, as far as anybody has heard."""
        return self._end is None

    @property
    def agent_pid(self) -> int | None:
        """The process of its agent."""
        return self._agent.pid

    def warm_up(self, on_tick: Callable[[], None]) -> None:
        """Start the ranks, and let them work until they are warm."""
        ((_, core, command),) = commands(self._begun.assignment)
        self._agent.begin(command, core=core, interrupts=self._interrupts)
        said = self._work(on_tick)
        if said is not None:
            self.step_s = float(said["step_s"] or 0.0)

    def take_turn(
        self,
        number: int,
        attempt: int,
        span: Span,
        *,
        helpers: Sequence[int | None],
        most_foreign: Mapping[str, float] | None,
        on_tick: Callable[[], None],
    ) -> str | None:
        """Let it measure one turn; say what disturbed it, None if it ended."""
        known = [pid for pid in (os.getpid(), *helpers) if pid is not None]
        told = {name: value for name, value in vars(span).items() if value is not None}
        self._agent.give(
            "turn",
            round=number,
            attempt=attempt,
            span=told,
            helpers=known,
            most_foreign=most_foreign,
        )
        said = self._work(on_tick)
        return None if said is None else str(said["disturbed"])

    def finish(self, on_tick: Callable[[], None]) -> None:
        """Tell it that there is no further turn, and wait for its end."""
        if self.is_alive:
            self._agent.give("finish")
        while self.is_alive:
            self._work(on_tick)

    def cancel(self) -> None:
        """Pass on that the session is to stop, without waiting for the end."""
        if self.is_alive:
            self._agent.obey(self._interrupts)

    def conclude(self, turns: TurnsRecord) -> Outcome:
        """Write its outcome."""
        assert self._end is not None
        self._begun.release()
        verdict = judged(self._begun.assignment, self._end)
        return conclude_trial(self._begun, self._end, verdict, turns)

    def _work(self, on_tick: Callable[[], None]) -> Mapping[str, Any] | None:
        """Wait until it stands still; None if it ended instead."""
        began = time.monotonic()
        said = self._agent.hear("waits", interrupts=self._interrupts, on_tick=on_tick)
        self.at_work_s += time.monotonic() - began
        if said is None:
            self._end = AgentLost(self._agent.host, self._agent.complaint)
        elif said["say"] == "ended":
            self._end = read_end(said)
        else:
            return said
        return None
