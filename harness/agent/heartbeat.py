"""Run periodic watchers of a trial inside the agent: the heartbeat is one of them.

The agent's one loop calls its watchers between events; a watcher that falls behind is never called
twice to catch up, and is told the time it was due so that it can count what it missed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from harness.agent.protocol import BEAT_S, TrialCommand, line


class Watcher(Protocol):
    """Something that reads at a fixed rate between a trial's boundaries."""

    period_ns: int

    def start(self, trial: TrialCommand, pids: Mapping[int, int]) -> None:
        """Start watching; ``pids`` are the ranks' processes by rank."""

    def tick(self, due_ns: int) -> None:
        """Read once; ``due_ns`` is when that should have been (monotonic)."""

    def stop(self) -> None:
        """Stop watching and close what was opened."""


class Observer(Protocol):
    """What observes a trial: it reads nothing while the trial stands still."""

    def stand_still(self) -> None:
        """Read nothing."""

    def go_on(self) -> None:
        """Read on."""


class Heartbeat:
    """Reports at a fixed rate that this agent is alive."""

    period_ns = int(BEAT_S * 1e9)

    def __init__(self, report: Callable[[bytes], None]) -> None:
        self._report = report

    def start(self, trial: TrialCommand, pids: Mapping[int, int]) -> None:
        """Prepare nothing: the first tick follows one period later."""

    def tick(self, due_ns: int) -> None:
        """Send one heartbeat to the host."""
        self._report(line("beat", due_ns=due_ns))

    def stop(self) -> None:
        """Release nothing: there is no state."""


class Watchers:
    """All watchers of one agent, each on its own drift-free tick."""

    def __init__(self, watchers: tuple[Watcher, ...]) -> None:
        self._watchers = watchers
        self._due: dict[int, int] = {}

    def start(self, trial: TrialCommand, pids: Mapping[int, int], now_ns: int) -> None:
        """Start every watcher; each first tick is one period from now."""
        for index, watcher in enumerate(self._watchers):
            watcher.start(trial, pids)
            self._due[index] = now_ns + watcher.period_ns

    def next_ns(self) -> int | None:
        """Give the time of the next tick; None while nothing is watched."""
        return min(self._due.values(), default=None)

    def run(self, now_ns: int) -> None:
        """Call every watcher that is due, once."""
        for index, due_ns in self._due.items():
            if due_ns <= now_ns:
                watcher = self._watchers[index]
                watcher.tick(due_ns)
                missed = (now_ns - due_ns) // watcher.period_ns
                self._due[index] = due_ns + (missed + 1) * watcher.period_ns

    def stop(self) -> None:
        """Stop every watcher."""
        for index in self._due:
            self._watchers[index].stop()
        self._due.clear()
