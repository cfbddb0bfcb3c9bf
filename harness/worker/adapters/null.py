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
from harness.worker.network.workload import Training, Workload
from harness.worker.place import Place


class NullActivity:
    """Steps that end where they begin."""

    def __init__(self, units: Mapping[str, float]) -> None:
        self.units = units

    def step(self) -> None:
        """Do nothing."""

    def sync(self) -> None:
        """Return at once: nothing runs on a device."""

    def values(self) -> Mapping[str, float]:
        """Give no values: there is no loss."""
        return {}

    def agree(self, value: float) -> float:
        """Give the value back: one rank has nobody to agree with."""
        return value


class NullAdapter:
    """An adapter without a framework."""

    def __init__(self, is_saving: bool) -> None:
        self._is_saving = is_saving

    def versions(self) -> Mapping[str, str]:
        """Name what runs the loop."""
        return {"null": sys.version.split()[0]}

    def activity(self, workload: Workload, feed: Feed, options: Mapping[str, Any]) -> Any:
        """Pretend to work; a network's samples count as if they had been trained on.

        Saving is the exception: it needs no framework.
        """
        del options  # it has none
        if not isinstance(workload, Training):
            return NullActivity({workload.unit: 1.0})
        units = {workload.unit: feed.work_per_rank}
        if not self._is_saving:
            return NullActivity(units)
        from harness.worker.checkpoints.plain import PlainState, state_bytes

        return PlainState(state_bytes(workload), feed.seed, units)

    def facts(self) -> Mapping[str, Any]:
        """Have used nothing."""
        return {}

    def close(self) -> None:
        """Release nothing."""


def open(job: Job, place: Place) -> NullAdapter:  # noqa: A001 - the contract's name
    """Open nothing."""
    is_saving = job.factors.get("checkpoint_every") is not None
    if is_saving and place.size > 1:
        raise Unsupported("these ranks do not talk, and so cannot agree on a checkpoint")
    return NullAdapter(is_saving)
