"""This file decides from the outcomes so far what is still to be run, and what is given up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.run.outcome import CANCELLED, NODE_LOST, OK, OUT_OF_MEMORY, UNSUPPORTED
from harness.store.layout import TrialName

_LOST_AT_MOST = 2
_FAILURES = 2

Outcomes = Mapping[TrialName, Mapping[str, Any]]


def next_attempt(block: int, outcomes: Outcomes) -> TrialName | None:
    """Name the attempt that a block still needs, or None: what is complete is never repeated."""
    tried = {name: one["outcome"] for name, one in outcomes.items() if name.block == block}
    again = TrialName(block, max((name.attempt for name in tried), default=0) + 1)
    if not tried:
        return again
    last = tried[max(tried)]
    lost = sum(outcome == NODE_LOST for outcome in tried.values())
    if last == CANCELLED or (last == NODE_LOST and lost < _LOST_AT_MOST):
        return again
    return None


def given_up(outcomes: Outcomes) -> str | None:
    """Say why a cell's further trials would be a waste of time, or None."""
    ended = [one for _, one in sorted(outcomes.items()) if one["outcome"] != CANCELLED]
    if any(one["outcome"] == OK for one in ended):
        return None
    for one in ended:
        if one["outcome"] in (UNSUPPORTED, OUT_OF_MEMORY):
            return str(one["outcome"])
    return f"failed {len(ended)} times" if len(ended) >= _FAILURES else None


@dataclass
class TimeLeft:
    """Estimates how long the rest takes, from what earlier trials of the same cells took."""

    guesses_s: Mapping[str, float]
    left: Counter[str]
    """Trials still to run, by cell."""
    _took_s: dict[str, list[float]] = field(default_factory=dict)

    def took(self, key: str, seconds: float) -> None:
        """Learn from a trial."""
        self._took_s.setdefault(key, []).append(seconds)

    def seconds(self, running: str, elapsed_s: float) -> float:
        """Add up what is left, less what the running trial of a cell has already taken."""
        whole = sum(self._each(key) * count for key, count in self.left.items())
        return max(0.0, whole - min(elapsed_s, self._each(running)))

    def _each(self, key: str) -> float:
        took = self._took_s.get(key)
        return sum(took) / len(took) if took else self.guesses_s[key]
