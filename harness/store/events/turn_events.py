"""Read the turns that a rank took, of a trial that stood still while others of its block worked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Turn:
    """One turn of a rank, its settling included; times as its windows'."""

    number: int
    round: int
    attempt: int
    start_ns: int
    end_ns: int
    disturbed: str
    """Why it does not count; empty where it does."""
    foreign_cores: float | None
    """Cores that others kept busy meanwhile; None is unknown."""
    is_check: bool = False
    """Whether it followed a turn of its own trial, as some of older runs did: it never counts."""
    steps_per_s: float | None = None
    """What it reached; None in runs that do not say."""
    settling_steps_per_s: float | None = None
    """What it reached before, once its first windows were over; None in older runs."""

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.end_ns - self.start_ns) / 1e9


def read_turns(events: Sequence[Mapping[str, Any]]) -> tuple[Turn, ...]:
    """Turn the events into turns, in order of time."""
    turns = (
        Turn(
            one["number"],
            one["round"],
            one["attempt"],
            one["start"],
            one["end"],
            one["disturbed"],
            one.get("foreign_cores"),
            bool(one.get("check")),
            _reached(one, "steps", "work_s"),
            _reached(one, "settled_steps", "settled_s"),
        )
        for one in events
    )
    return tuple(sorted(turns, key=lambda turn: turn.start_ns))


def _reached(turn: Mapping[str, Any], steps: str, seconds: str) -> float | None:
    return turn[steps] / turn[seconds] if turn.get(steps) and turn.get(seconds) else None
