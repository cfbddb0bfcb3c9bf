"""Say what a session tells whoever watches it; the command line draws it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.store.outcome import Outcome


@dataclass(frozen=True)
class Progress:
    """Where a session stands."""

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


class Observer(Protocol):
    """Somebody who watches a session."""

    def progressed(self, progress: Progress) -> None:
        """Hear where the session stands: at each trial's start and about once a second."""

    def trial_ended(self, progress: Progress, outcome: Outcome) -> None:
        """Hear how a trial ended."""

    def doing(self, text: str) -> None:
        """Hear what goes on before the first trial."""

    def noted(self, text: str) -> None:
        """Hear something that a person should know."""


@dataclass(frozen=True)
class SessionResult:
    """What a session achieved."""

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
