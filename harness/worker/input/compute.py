"""Stand in for a model between two batches: a calibrated burn of CPU, or a sleep.

A burn takes a core, as computing does, and so shows where reading and computing fight for it; a
sleep takes none, and is here for comparison with tools that sleep. Burning is hashing of a large
buffer, during which Python's lock is free, as it is while a framework computes.
"""

from __future__ import annotations

import hashlib
import time
from typing import Callable

_BLOCK = bytes(1 << 16)
_CALIBRATION = 64


def stand_in(kind: str, length_ms: float) -> Callable[[], None]:
    """Make what takes so long per batch when nothing disturbs it."""
    if kind == "none" or length_ms <= 0:
        return lambda: None
    if kind == "sleep":
        return lambda: time.sleep(length_ms / 1e3)
    if kind != "burn":
        raise ValueError("there is no compute '{}'".format(kind))
    rounds = max(1, round(length_ms / 1e3 / _block_s()))

    def burn() -> None:
        digest = hashlib.sha256()
        for _ in range(rounds):
            digest.update(_BLOCK)

    return burn


def _block_s() -> float:
    """Measure how much CPU time one block takes at best: others may hold us up meanwhile."""
    digest = hashlib.sha256()
    best = float("inf")
    for _ in range(_CALIBRATION):
        before = time.thread_time_ns()
        digest.update(_BLOCK)
        best = min(best, (time.thread_time_ns() - before) / 1e9)
    return best
