"""This file is the adapter that does nothing, which leaves what the harness itself costs.

Its ranks do not talk: each decides alone when it has run long enough.
"""

from __future__ import annotations

import platform
from typing import Any, Mapping

from harness.node.feed import Feed
from harness.node.job import Job
from harness.node.place import Place
from harness.node.workload import Reading, Training, Workload


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

    def versions(self) -> Mapping[str, str]:
        """Name what runs the loop."""
        return {"null": platform.python_version()}

    def activity(self, workload: Workload, feed: Feed, options: Mapping[str, Any]) -> Any:
        """Pretend to work; a network's samples count as if they had been trained on.

        Reading is the exception: it needs no framework.
        """
        del options  # it has none
        if isinstance(workload, Reading):
            from harness.node.input.open import reading

            return reading(workload, feed)
        is_training = isinstance(workload, Training)
        return NullActivity({workload.unit: float(feed.batch if is_training else 1)})

    def facts(self) -> Mapping[str, Any]:
        """Have used nothing."""
        return {}

    def close(self) -> None:
        """Have nothing to give back."""


def open(job: Job, place: Place) -> NullAdapter:  # noqa: A001 - the contract's name
    """Open nothing."""
    del job, place  # it is the same everywhere
    return NullAdapter()
