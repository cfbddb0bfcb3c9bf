"""Count the trials that were made: one count, which the answer, the warnings and the page share.

Each attempt is one. What a study plans is told apart from that, in "planned trials".
"""

from __future__ import annotations

from collections.abc import Iterable, Sized
from dataclasses import dataclass

from harness.store.layout import PILOT
from harness.units import counted
from harness.verdicts.results import CellResult, TrialResult


@dataclass(frozen=True)
class Tally:
    """Trials that came to an end of their own."""

    made: tuple[TrialResult, ...]
    """All but the pilot trials: whatever is said of so many trials is of these."""
    pilots: tuple[TrialResult, ...]
    """They chose the reference, and count for nothing else."""

    @property
    def counted(self) -> int:
        """How many give their cell its number."""
        return sum(trial.counted for trial in self.made)

    def out_of(self, number: int) -> str:
        """Write so many of them: ``3 of 12 trials``."""
        return f"{number:,} of {_trials(self.made)}"

    def __str__(self) -> str:
        """Write how many there are."""
        pilots = f" and {counted(len(self.pilots), 'pilot trial')}" if self.pilots else ""
        return f"{_trials(self.made)}{pilots}"


def _trials(made: Sized) -> str:
    return "1 trial" if len(made) == 1 else f"{len(made):,} trials"


def tally(cells: Iterable[CellResult]) -> Tally:
    """Count the trials of some cells."""
    trials = [trial for cell in cells for trial in cell.trials]
    return Tally(
        tuple(trial for trial in trials if trial.block != PILOT),
        tuple(trial for trial in trials if trial.block == PILOT),
    )
