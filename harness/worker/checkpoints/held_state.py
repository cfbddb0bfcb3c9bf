"""What the timed loop steps when saving itself is the work: a state that holds still.

One step of training has made the optimiser's state; from then on a step does nothing, and what is
timed is the saver.
"""

from __future__ import annotations

from typing import Any, Mapping

from harness.worker.contracts import Saver


class HeldActivity:
    """A trained state, and what saves it."""

    def __init__(self, trained: Any, unit: str) -> None:
        trained.step()
        trained.sync()
        self.agree = trained.agree
        self.sync = trained.sync
        self._saver: Saver = trained.saver()
        self.units: Mapping[str, float] = {unit: self._saver.bytes / 1e6}

    def step(self) -> None:
        """Do nothing: the loop saves."""

    def values(self) -> Mapping[str, float]:
        """Have computed nothing."""
        return {}

    def saver(self) -> Saver:
        """Give what saves the state."""
        return self._saver
