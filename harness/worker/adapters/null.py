"""The adapter that does nothing, which leaves what the harness itself costs.

Its ranks do not talk: each decides alone when it has run long enough. Those that read meet between
two epochs, as every framework's do.
"""

from __future__ import annotations

import sys
from typing import Any, Mapping

from harness.worker.contracts import Unsupported
from harness.worker.feed import Feed
from harness.worker.job import Job
from harness.worker.network.workload import Checkpointing, Opening, Reading, Training, Workload
from harness.worker.place import Place


class NullActivity:
    """Steps that end where they begin."""

    def __init__(self, units: Mapping[str, float]) -> None:
        self.units = units

    def step(self) -> None:
        """Do nothing."""

    def sync(self) -> None:
        """Be idle, as always."""

    def values(self) -> Mapping[str, float]:
        """Have computed nothing."""
        return {}

    def agree(self, value: float) -> float:
        """Keep one's own counsel."""
        return value


class NullAdapter:
    """The framework that is not there."""

    def __init__(self, is_saving: bool) -> None:
        self._is_saving = is_saving

    def versions(self) -> Mapping[str, str]:
        """Name what runs the loop."""
        return {"null": sys.version.split()[0]}

    def activity(self, workload: Workload, feed: Feed, options: Mapping[str, Any]) -> Any:
        """Pretend to work; a network's samples count as if they had been trained on.

        Reading and saving are the exceptions: they need no framework.
        """
        del options  # it has none
        if isinstance(workload, (Opening, Reading)):
            from harness.worker.input.open import reading

            return reading(workload, feed)
        if isinstance(workload, Checkpointing):
            from harness.worker.checkpoints.held_state import HeldActivity

            return HeldActivity(self._saved(workload.training, feed), workload.unit)
        if isinstance(workload, Training) and self._is_saving:
            return self._saved(workload, feed)
        is_training = isinstance(workload, Training)
        return NullActivity({workload.unit: float(feed.batch if is_training else 1)})

    def _saved(self, training: Training, feed: Feed) -> Any:
        from harness.worker.checkpoints.plain import PlainState, state_bytes

        return PlainState(state_bytes(training), feed.seed, {training.unit: float(feed.batch)})

    def facts(self) -> Mapping[str, Any]:
        """Have used nothing."""
        return {}

    def close(self) -> None:
        """Have nothing to give back."""


def open(job: Job, place: Place) -> NullAdapter:  # noqa: A001 - the contract's name
    """Open nothing."""
    is_saving = job.factors.get("checkpoint_every") is not None
    if is_saving and place.size > 1:
        raise Unsupported("these ranks do not talk, and so cannot agree on a checkpoint")
    return NullAdapter(is_saving)
