"""The progress of a session and its listener, which the command line implements."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.ranks.interrupts import Interrupts
from harness.store.outcome import Outcome
from harness.store.paths.handles import Made


@dataclass(frozen=True)
class Progress:
    """How far a session is."""

    run: Path
    done: int
    total: int
    """Trials, those of earlier sessions included."""
    block: int
    blocks: int
    label: str
    """The cell at work."""
    trial: str
    phase: str | None
    rate: float | None
    """Units of work per second at the moment."""
    unit: str
    left_s: float | None
    turn: str = ""
    """Which round its trials are in, where several take turns."""


class ProgressListener(Protocol):
    """Receives a session's progress."""

    def progressed(self, progress: Progress) -> None:
        """Receive the progress: at each trial's start and about once a second."""

    def trial_ended(self, progress: Progress, outcome: Outcome) -> None:
        """Receive a trial's outcome."""

    def doing(self, text: str) -> None:
        """Receive the present activity before the first trial."""

    def noted(self, text: str) -> None:
        """Receive a note for the user."""


@dataclass(frozen=True)
class SessionResult:
    """The result of a session."""

    run: Path
    total: int
    done: int
    ok: int
    failed: int
    """Complete trials that did not end well."""
    skipped: int
    """Trials not run because their cell cannot succeed."""
    waiting: int
    """Trials that were left because too few nodes answered."""
    interrupted: int
    """The exit code for the signal that cut it short, 130 for Ctrl-C, 143 for SIGTERM; else 0."""
    lost: int = 0
    """Trials that were left because their nodes failed again and again."""
    made: Made | None = None
    """Which directory the run is; None: not known."""


class InterruptsTold:
    """Tells a person once what each of their interrupts does."""

    def __init__(self, interrupts: Interrupts, observer: ProgressListener) -> None:
        self._interrupts = interrupts
        self._observer = observer
        self._told = 0

    def say(self) -> None:
        """Say it where there is news."""
        if self._interrupts.count > self._told:
            self._told = self._interrupts.count
            self._observer.noted(
                "Stopping: the running trial is being ended. Once more to kill it now."
                if self._told == 1
                else "Killing the running trial."
            )
