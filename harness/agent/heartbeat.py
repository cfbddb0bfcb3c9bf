"""Say how something watches a trial from inside the agent: on the agent's own clock.

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

    def begins(self, trial: TrialCommand, pids: Mapping[int, int]) -> None:
        """Start watching; ``pids`` are the ranks' processes by rank."""

    def tick(self, due_ns: int) -> None:
        """Read once; ``due_ns`` is when that should have been (monotonic)."""

    def ends(self) -> None:
        """Stop watching and close what was opened."""


class Heart:
    """Tells the host that this agent lives."""

    period_ns = int(BEAT_S * 1e9)

    def __init__(self, report: Callable[[bytes], None]) -> None:
        self._report = report

    def begins(self, trial: TrialCommand, pids: Mapping[int, int]) -> None:
        """Beat from now on."""

    def tick(self, due_ns: int) -> None:
        """Beat."""
        self._report(line("beat", due_ns=due_ns))

    def ends(self) -> None:
        """Beat no more."""


class Watch:
    """All watchers of one agent, each on its own drift-free tick."""

    def __init__(self, watchers: tuple[Watcher, ...]) -> None:
        self._watchers = watchers
        self._due: dict[int, int] = {}

    def begins(self, trial: TrialCommand, pids: Mapping[int, int], now_ns: int) -> None:
        """Mark the trial's beginning."""
        for index, watcher in enumerate(self._watchers):
            watcher.begins(trial, pids)
            self._due[index] = now_ns + watcher.period_ns

    def next_ns(self) -> int | None:
        """Say when the next tick is due; None while nothing is watched."""
        return min(self._due.values(), default=None)

    def run(self, now_ns: int) -> None:
        """Call every watcher that is due, once."""
        for index, due_ns in self._due.items():
            if due_ns <= now_ns:
                watcher = self._watchers[index]
                watcher.tick(due_ns)
                missed = (now_ns - due_ns) // watcher.period_ns
                self._due[index] = due_ns + (missed + 1) * watcher.period_ns

    def ends(self) -> None:
        """Mark the trial's end."""
        for index in self._due:
            self._watchers[index].ends()
        self._due.clear()
