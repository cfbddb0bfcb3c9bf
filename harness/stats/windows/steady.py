"""Find where a trial's steady state begins, and describe what the windows then do.

The beginning is a change point: the cut after which the mean is known best, MSER (White, "An
effective truncation heuristic for bias reduction in simulation output", Simulation 69, 1997), on
logarithms clipped at five robust deviations so that single hiccups do not steer it. The cut is
taken only if what it removes is really slower than what it keeps: a program that warms up becomes
faster, and one that becomes slower met somebody else, or a lower clock.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

import numpy as np

from harness.stats.windows.shape import FEWEST_WINDOWS, Shape, Steady

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

CLIP = 5.0
RELEVANT = 0.01
"""A beginning less than 1 % slower than the rest is left in."""
CLEAR = 4.0
"""And it must differ by four standard errors."""


def begin(times: Array, ordered: Array | None = None) -> Steady:
    """Choose the first steady window from the step times of the measured windows, in order.

    Sorting takes a quarter of the time: who has sorted them already hands them over.
    """
    count = len(times)
    if count < FEWEST_WINDOWS:
        return Steady(0, f"only {count} windows: too few to look for a warm-up", True)
    logs, _, limit = _clipped(times, np.sort(times) if ordered is None else ordered)
    deviation = limit / CLIP
    latest = count // 2
    # the variance of x[cut:] over its length, for every cut at once
    left = np.arange(count, count - latest - 1, -1, dtype=np.float64)
    logs_squared = logs * logs
    ahead, squares = np.zeros((2, latest + 1))
    np.cumsum(logs[:latest], out=ahead[1:])
    np.cumsum(logs_squared[:latest], out=squares[1:])
    rest = float(logs.sum()) - ahead
    score = (float(logs_squared.sum()) - squares - rest * rest / left) / (left * left)
    cut = int(np.argmin(score))
    if cut == 0:
        return Steady(0, f"all {count} windows: no warm-up was left in them", True)
    # medians of what was measured: clipped, a beginning of a very quiet trial would be no slower
    usual = float(np.median(times[cut:]))
    clear = CLEAR * deviation * (1 / cut + 1 / (count - cut)) ** 0.5
    is_slower = log(float(np.median(times[:cut])) / usual) > max(log(1 + RELEVANT), clear)
    # a slow stretch that comes later is no beginning, though what ends with it is slower too
    begins_slow = log(float(np.median(times[: cut // 3 + 1])) / usual) > log(1 + RELEVANT)
    if not (is_slower and begins_slow):
        return Steady(0, f"all {count} windows: no warm-up was left in them", True)
    raw = (float(np.mean(times[:cut])) / float(np.mean(times[cut:])) - 1) * 100
    if cut == latest:
        return Steady(cut, f"times still change half-way ({raw:.0f} % slower before)", False)
    why = f"the first {cut} of {count} windows were {raw:.0f} % slower than the rest"
    return Steady(cut, why, True)


def describe(times: Array, ordered: Array | None = None) -> Shape:
    """Describe the steady windows' step times, given in order of time, and perhaps sorted too."""
    count = len(times)
    if ordered is None:
        ordered = np.sort(times)
    marks = (0.25, 0.5, 0.75, 0.95, 0.99)
    places = [share * (count - 1) for share in marks]
    q25, q50, q75, q95, q99 = (
        float(
            ordered[int(at)] + (ordered[min(int(at) + 1, count - 1)] - ordered[int(at)]) * (at % 1)
        )
        for at in places
    )
    late = ordered[np.searchsorted(ordered, 1.5 * q50) :]
    hiccups = float((late - q50).sum()) / float(ordered.sum())
    spread = (q75 - q25) / 1.349 / q50
    if count < FEWEST_WINDOWS:
        return Shape(count, q50, spread, q50, q95, q99, hiccups, 0.0, 0.0, 0.0, 0.0, None, 0.0, 0.0)
    logs, middle, limit = _clipped(times, ordered)
    drift, clear, residuals, variance = _line(logs)
    if variance <= 1e-18:
        return Shape(
            count, q50, spread, q50, q95, q99, hiccups, drift, clear, 0.0, 0.0, None, 0.0, 0.0
        )
    neighbours = float(residuals[1:] @ residuals[:-1]) / (variance * count)
    eighth = count // 8
    means = residuals[: eighth * 8].reshape(8, eighth).sum(axis=1) / eighth
    wander = float(means @ means / 7) ** 0.5
    period, rhythm = _rhythm(residuals, variance)
    return Shape(
        windows=count,
        median_s=q50,
        spread=spread,
        p50_s=q50,
        p95_s=q95,
        p99_s=q99,
        hiccups=hiccups,
        drift=drift,
        drift_clear=clear,
        autocorrelation=neighbours,
        wander=wander,
        period=period,
        rhythm=rhythm,
        modes=_modes(_bounded(ordered, middle, limit)),
    )


def _clipped(times: Array, ordered: Array) -> tuple[Array, float, float]:
    """Give logarithms around their median, clipped; and the median's logarithm and the limit."""
    count = len(ordered)
    middle = log(ordered[count // 2])
    deviation = log(ordered[count * 3 // 4] / ordered[count // 4]) / 1.349
    # a clock that ticks coarsely makes quartiles equal; a tenth of a per cent is then the grain
    limit = CLIP * max(deviation, 1e-3)
    return _bounded(times, middle, limit), middle, limit


def _bounded(times: Array, middle: float, limit: float) -> Array:
    logs: Array = np.log(times)
    logs -= middle
    return np.minimum(np.maximum(logs, -limit), limit)


def _line(logs: Array) -> tuple[float, float, Array, float]:
    """Fit a straight line; give its rise, the rise in standard errors, residuals and variance."""
    count = len(logs)
    x = np.arange(count, dtype=np.float64) - (count - 1) / 2
    square = count * (count * count - 1) / 12
    slope = float(x @ logs) / square
    residuals: Array = logs - logs.sum() / count - slope * x
    variance = float(residuals @ residuals) / count
    error = (variance / square) ** 0.5
    rise = slope * (count - 1)
    if error > 0:
        return rise, abs(slope) / error, residuals, variance
    return rise, 0.0 if slope == 0 else float("inf"), residuals, variance


def _rhythm(residuals: Array, total_variance: float) -> tuple[float | None, float]:
    """Find the strongest frequency (Fisher, "Tests of significance in harmonic analysis", 1929).

    The test holds for white noise. Speed that wanders is red, and its slow frequencies are strong
    without any rhythm: so each is weighed by what a chain of neighbours that are as much alike
    (autoregression of the first order, fitted without the strongest frequency) would have there.
    """
    spectrum = np.fft.rfft(residuals)
    power: Array = (spectrum.real**2 + spectrum.imag**2)[1:]
    total = float(power.sum())
    if total <= 0:
        return None, 0.0
    turns = np.cos(2 * np.pi * np.arange(1, len(power) + 1) / len(residuals))
    white, best = power, int(np.argmax(power))
    for _ in range(2):  # the strongest of the weighed ones may be another
        white = _weighed(power, turns, best)
        best = int(np.argmax(white))
    share = float(white[best]) / float(white.sum())
    chance = len(white) * (1 - share) ** (len(white) - 1)
    around = float(power[max(0, best - 1) : best + 2].sum()) / total
    # one or two cycles in a whole trial are drift or wander, not a rhythm
    if chance > 1e-3 or best + 1 < 3:
        return None, 0.0
    return len(residuals) / (best + 1), 2 * (around * total_variance) ** 0.5


def _weighed(power: Array, turns: Array, best: int) -> Array:
    others = power.copy()
    others[max(0, best - 1) : best + 2] = np.median(power)
    alike = min(max(float(others @ turns) / float(others.sum()), 0.0), 0.99)
    weighed: Array = power * (1 + alike * alike - 2 * alike * turns)
    return weighed


def _modes(ordered: Array) -> float:
    """Split sorted values in two (Otsu, 1979); give the gap if two clusters fit far better."""
    count = len(ordered)
    sums = np.cumsum(ordered)
    total = float(sums[-1])
    size = np.arange(1, count, dtype=np.float64)
    low = sums[:-1] / size
    high = (total - sums[:-1]) / (count - size)
    between = size * (count - size) * (high - low) ** 2 / count
    at = int(np.argmax(between))
    variance = float(ordered @ ordered) - total * total / count
    # one normal cluster explains 64 % of its variance by a split, a flat one 75 %
    if variance <= 0 or between[at] / variance < 0.85 or not 0.1 <= (at + 1) / count <= 0.9:
        return 0.0
    return float(high[at] - low[at])
