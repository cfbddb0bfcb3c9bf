"""This file states what the worker side expects of an adapter: the doors, and nothing behind them.

An adapter module has one function, ``open(job, place) -> Adapter``. Nothing here is needed at run
time; the Protocols exist for type checkers and readers (``typing.Protocol`` came with Python 3.8).

Optional doors. Of an Activity, each called outside the clock:

    parameters() -> int             trainable ones of the lowered model, asserted before timing
    device_steps() -> [seconds]     the device's own time of each step since the last call, or of as
                                    many of the latest as the adapter holds (CUDA events)

An Activity whose steps happen in another program has ``marks`` instead of step and sync; see
``outside.py``.

Of an Adapter, each used outside any timed trial, by a job with that purpose:

    examine(workload, precision) -> Subject             see ``examine.py``
    probe(workload, feed, options) -> {name: fact}      what really ran
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

if TYPE_CHECKING:
    from typing import Protocol

    from harness.node.feed import Feed
    from harness.node.workload import Workload
else:
    Protocol = object


class Unsupported(Exception):
    """Say why this framework cannot do what the cell asks; the cell becomes an honest hole."""


class OutOfMemory(Exception):
    """Carry the framework's own words about memory it could not get."""


class Activity(Protocol):
    """What an adapter hands to the timed loop."""

    units: Mapping[str, float]
    """Work done per step by this rank, for example ``{"images": 16}``."""

    def step(self) -> None:
        """Enqueue one step; never read a clock, never wait."""

    def sync(self) -> None:
        """Return when the device is idle."""

    def values(self) -> Mapping[str, float]:
        """Give the loss and the like; called outside the clock."""

    def agree(self, value: float) -> float:
        """Give the largest value any rank offers; called outside the clock, only if size > 1."""


class Adapter(Protocol):
    """One framework, opened in its own interpreter."""

    def versions(self) -> Mapping[str, str]:
        """Name the framework and every library below it that decides its speed."""

    def activity(self, workload: Workload, feed: Feed, options: Mapping[str, Any]) -> Activity:
        """Lower a workload to this framework; raise Unsupported with the reason."""

    def facts(self) -> Mapping[str, Any]:
        """Say what was used, after the last window: peak_device_bytes, graph breaks, threads."""

    def close(self) -> None:
        """Give back what was opened."""
