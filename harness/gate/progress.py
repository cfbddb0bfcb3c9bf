"""Tell what the gate examines, since when, and how long a cell's examination may take."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from harness.units import duration

Watcher = Callable[[str], None]


@dataclass
class ExaminationProgress:
    """One cell's examination after another."""

    watch: Watcher
    _title: str = ""
    _began_s: float = 0.0
    _expected_s: float = 0.0

    def begin(self, title: str) -> None:
        """Start a cell."""
        self._title, self._began_s = title, time.monotonic()

    def expect(self, seconds: float) -> None:
        """Say how long the cell takes where nothing of it is kept."""
        self._expected_s = seconds

    def doing(self, what: str) -> None:
        """Tell what is examined now."""
        elapsed, expected = duration(round(time.monotonic() - self._began_s)), self._expected_s
        self.watch(f"{self._title}: {what} ({elapsed} of about {duration(round(expected))})")
