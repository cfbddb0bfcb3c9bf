"""What the timed loop steps when reading itself is the work."""

from __future__ import annotations

from typing import Callable, Mapping

from harness.worker.input.epochs import Epochs


class ReadingActivity:
    """Fetch a batch, then do what stands for computing with it."""

    def __init__(
        self, epochs: Epochs, batch_per_rank: int, unit: str, compute: Callable[[], None]
    ) -> None:
        self.units: Mapping[str, float] = {unit: float(batch_per_rank)}
        self.epochs = epochs
        self._compute = compute

    def fetch(self) -> None:
        """Wait for the next batch."""
        self.epochs.next()

    def step(self) -> None:
        """Compute, if anything is to be computed."""
        self._compute()

    def sync(self) -> None:
        """Return at once: a batch that was fetched is in memory."""

    def values(self) -> Mapping[str, float]:
        """Have computed nothing."""
        return {}

    def agree(self, value: float) -> float:
        """Meet the other ranks between two epochs; amid one, keep one's own counsel."""
        return value if self.epochs.is_begun() else self.epochs.agree(value)
