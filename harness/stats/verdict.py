"""This file says whether a trial's number may be believed, and holds every threshold for it.

A trial has one verdict, the worst found, with all its evidence. ``valid``, ``noisy`` and
``unsteady`` come from the windows alone; verdicts from what the collector saw extend ``THRESHOLDS``
and ``SEVERITY``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.stats.steady import FEWEST_WINDOWS, Shape, Steady

SEVERITY = ("valid", "noisy", "unsteady")
"""From harmless to worst."""
REJECTING: frozenset[str] = frozenset()
"""Verdicts whose trials are shown but not counted; those from the windows only mark."""


@dataclass(frozen=True)
class Threshold:
    """One limit: which verdict it gives, and what it means."""

    verdict: str
    name: str
    value: float
    meaning: str


THRESHOLDS = {
    limit.name: limit
    for limit in (
        Threshold("noisy", "spread", 0.10, "robust deviation of a window's time over the median"),
        Threshold("noisy", "hiccups", 0.05, "share of the time lost in windows over 1.5 medians"),
        Threshold("noisy", "windows", FEWEST_WINDOWS, "fewer windows cannot be judged"),
        Threshold("unsteady", "drift", 0.03, "change from the first to the last steady window"),
        Threshold("unsteady", "wander", 0.015, "spread of the means of eighths of the trial"),
        Threshold("unsteady", "rhythm", 0.02, "swing of a regular rhythm in the times"),
        Threshold("unsteady", "modes", 0.03, "distance of two clusters of window times"),
    )
}
CLEAR_DRIFT = 4.0
"""A drift also has to be this many standard errors from none."""
NEIGHBOURLY = 0.3
"""A wander also needs neighbouring windows to be alike."""


@dataclass(frozen=True)
class Finding:
    """One reason for a verdict."""

    verdict: str
    evidence: str


def judge(steady: Steady, shape: Shape) -> tuple[Finding, ...]:
    """Find everything that the windows say against a trial's number, the worst first."""
    found = []
    if shape.windows < _limit("windows"):
        windows = "1 steady window" if shape.windows == 1 else f"{shape.windows} steady windows"
        found.append(Finding("noisy", f"only {windows}: too few to judge"))
    if shape.spread > _limit("spread"):
        found.append(Finding("noisy", f"window times spread by {shape.spread:.0%} of the median"))
    if shape.hiccups > _limit("hiccups"):
        found.append(Finding("noisy", f"{shape.hiccups:.0%} of the time went into slow windows"))
    if not steady.settled:
        found.append(Finding("unsteady", steady.why))
    if abs(shape.drift) > _limit("drift") and shape.drift_clear > CLEAR_DRIFT:
        way = "slower" if shape.drift > 0 else "faster"
        found.append(Finding("unsteady", f"steps became {abs(shape.drift):.0%} {way} in the trial"))
    if shape.wander > _limit("wander") and shape.autocorrelation > NEIGHBOURLY:
        found.append(Finding("unsteady", f"speed wandered by {shape.wander:.1%} within the trial"))
    if shape.period is not None and shape.rhythm > _limit("rhythm"):
        cycle = f"every {shape.period:.3g} windows"
        found.append(Finding("unsteady", f"speed rose and fell by {shape.rhythm:.0%} {cycle}"))
    if shape.modes > _limit("modes"):
        found.append(Finding("unsteady", f"two speeds, {shape.modes:.0%} apart"))
    return tuple(sorted(found, key=lambda one: -SEVERITY.index(one.verdict)))


def worst(findings: Sequence[Finding]) -> str:
    """Give the one verdict of a trial."""
    return max((finding.verdict for finding in findings), key=SEVERITY.index, default="valid")


def _limit(name: str) -> float:
    return THRESHOLDS[name].value
