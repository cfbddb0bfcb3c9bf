"""What a step gives: its answer, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class NotPossible(Exception):
    """Say what this machine or interpreter lacks for a step; that is no failure."""


class Unfinished(Exception):
    """Say that a step ran out of its time; the next call goes on with it."""


class Broken(Exception):
    """Say which command of a step did not do its work."""


@dataclass(frozen=True)
class Answer:
    """What a step found."""

    lines: tuple[str, ...]
    """For people."""
    measured: Mapping[str, Any] = field(default_factory=dict)
    """For programs."""
    faults: tuple[str, ...] = ()
    """What is not as it has to be; with any, the step failed."""
