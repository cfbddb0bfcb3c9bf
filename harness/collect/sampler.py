"""Say what a source of readings is, and what it is told about what it observes.

A source is a module in a package of the entry-point group ``bakeoff.samplers``. It holds ``HZ``
(how often it is read unless told otherwise; never more often than ``MOST_HZ``, if it holds that),
``BLOCKS`` (whether a reading may keep its caller waiting: then it is read from a thread of its own)
and ``open(observed) -> Sampler``, which raises Unavailable with the reason where this machine has
no such thing. One that holds ``SHORTEST_S`` tells nothing of a trial shorter than that, and is not
opened before.

A sampler that depends on nothing but the machine, and keeps nothing from one reading to the next,
may say ``lasts = True``: it then stays open and serves every trial, until a reading fails.

A sampler may have ``notes`` (facts that hold for the whole recording) and ``news()``, called after
each reading: what it has to tell beside numbers becomes notes under the source's name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from harness.store.samples.samples_format import Channel


@dataclass(frozen=True)
class Observed:
    """What is observed: the ranks' processes on this node, and the machine beneath."""

    ranks: Mapping[int, int] = field(default_factory=dict)
    """Rank -> process."""
    cpus: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Rank -> the CPUs it may use."""
    devices: Mapping[int, str | None] = field(default_factory=dict)
    """Rank -> its CUDA_VISIBLE_DEVICES; None where that is not set."""
    directory: Path = Path()
    """Where the trial's files lie: its file system is watched."""
    root: Path = Path("/")
    """Where /proc and /sys are."""


class Sampler(Protocol):
    """One opened source: fixed channels, read together."""

    @property
    def channels(self) -> Sequence[Channel]:
        """What ``read`` gives, in order."""

    def read(self) -> Sequence[int]:
        """Read every channel's raw number; a gap code where there is none."""

    def close(self) -> None:
        """Close what was opened."""
