"""Tell people what is waited for, once that takes long; who tells them is said by ``tell_by``."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextvars import ContextVar

QUIET_S = 2.0
"""So long nobody wonders."""

_TELLER: ContextVar[Callable[[str], None] | None] = ContextVar("teller", default=None)


def tell_by(teller: Callable[[str], None]) -> None:
    """Choose what writes a line to people; without one nothing is told."""
    _TELLER.set(teller)


class Notice:
    """One line, given once at its time; empty: never."""

    def __init__(self, awaited: str) -> None:
        self._awaited = awaited
        self.due_s = time.monotonic() + QUIET_S if awaited else math.inf

    def give(self) -> None:
        """Tell what is awaited."""
        teller = _TELLER.get()
        if teller is not None:
            teller(f"Waiting for {self._awaited} …")
        self.due_s = math.inf
