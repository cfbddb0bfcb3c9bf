"""A ladder: how fast a chain is, from the bare device up to the whole training."""

from __future__ import annotations

from dataclasses import dataclass

from harness.verdicts.results import Estimate


@dataclass(frozen=True)
class Rung:
    """One step of a ladder: how fast the chain is up to here."""

    name: str
    rate: Estimate
    cpu_s_per_gb: float | None = None
    """CPU time spent per 10^9 bytes, where it was measured."""


@dataclass(frozen=True)
class Ladder:
    """From the bare device up to the whole training, each rung with one thing more to do."""

    title: str
    state: str
    """cold, warm …: what the caches held."""
    rungs: tuple[Rung, ...]
    """All in one unit, from the device upwards."""
    bottleneck: str = ""
    """storage-, CPU-, compute- or harness-bound; empty where nobody can tell."""
    source: str = ""
