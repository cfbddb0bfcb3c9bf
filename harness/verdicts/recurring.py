"""Tell a stall that comes in every trial of a cell from one that somebody else caused.

A program that compiles again at its hundredth step stands still there in each trial. Rejecting all
of them would leave the cell without a number, and say of the machine what the program did.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.verdicts.results import TrialResult

STALLED = "stalled"
_NEAR = 2
"""Windows that the place of a recurring stall may differ by: windows may hold several steps."""


def is_own_stall(trials: Sequence[TrialResult]) -> bool:
    """Whether most of a cell's trials, and at least two, stand still at about the same window."""
    judged = [trial for trial in trials if trial.rate is not None]
    places = sorted(trial.stall_at for trial in judged if trial.stall_at is not None)
    if not places:
        return False
    usual = places[len(places) // 2]
    alike = [place for place in places if abs(place - usual) <= _NEAR]
    return len(alike) >= 2 and 2 * len(alike) > len(judged)
