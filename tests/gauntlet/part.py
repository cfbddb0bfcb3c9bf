"""What one part of the gauntlet found: how often it did what, and what went wrong.

A part follows from its stage, the seed and its number alone: it can be made again by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Part:
    """One part's counts, and its findings: each is a defect of ours."""

    counts: Counter[str] = field(default_factory=Counter)
    findings: list[dict[str, Any]] = field(default_factory=list)
    largest: dict[str, float] = field(default_factory=dict)
    """The largest value that was seen of something."""

    def found(self, what: str, **where: Any) -> None:
        """Record a defect."""
        self.findings.append({"what": what, **where})

    def saw(self, what: str, value: float) -> None:
        """Keep the largest value."""
        self.largest[what] = max(value, self.largest.get(what, value))

    def add(self, other: Part) -> None:
        """Add another part's counts and findings to these."""
        self.counts.update(other.counts)
        self.findings += other.findings
        for what, value in other.largest.items():
            self.saw(what, value)


@dataclass(frozen=True)
class Stage:
    """One kind of trouble: how it is made in parts, and how many parts the long form has."""

    name: str
    title: str
    parts: Callable[[], int]
    make: Callable[[int, int, Path], Part]
    """Takes the seed, the part's number and an empty folder of its own."""
    units: str
    """The count that says how much was done."""
