"""What the windows of a trial look like, as values: where they are steady, and their shape then."""

from __future__ import annotations

from dataclasses import dataclass

FEWEST_WINDOWS = 8
"""With fewer measured windows no warm-up is looked for, and nothing can be said of their shape."""


@dataclass(frozen=True)
class Steady:
    """Where the steady state begins, and why there."""

    start: int
    """Index of the first steady window of the measured phase."""
    why: str
    settled: bool
    """False when the times still change in the second half."""


@dataclass(frozen=True)
class Shape:
    """What the steady windows look like; times relative to their median, changes as fractions."""

    windows: int
    median_s: float
    spread: float
    """Robust standard deviation of a window (from the quartiles) over the median."""
    p50_s: float
    p95_s: float
    p99_s: float
    hiccups: float
    """Share of the whole time that windows over 1.5 medians take beyond the median."""
    drift: float
    """Change of the fitted line from the first window to the last."""
    drift_clear: float
    """The same in standard errors."""
    autocorrelation: float
    """Of neighbouring windows."""
    wander: float
    """Spread of the means of eighths of the trial, relative: what autocorrelation amounts to."""
    period: float | None
    """Windows per cycle of the strongest rhythm, if it is more than chance."""
    rhythm: float
    """How far the speed swings with it, relative."""
    modes: float
    """Distance of two clusters of window times, relative; 0 when one cluster fits."""
