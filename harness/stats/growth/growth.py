"""Fit how a step's time grows with the number of devices, and predict larger numbers.

A step takes what is computed (divided by the devices where the batch of all stays the same, plus
what Amdahl's law does not divide) and communication: alpha for each message and beta for each byte
(Thakur et al., Int. J. High Perform. Comput. Appl. 19, 2005: an all-reduce around a ring sends
2 (p - 1) messages and 2 (p - 1) / p of the bytes, one down a tree 2 log2 p). Few counts cannot tell
which way it grows, and a straight line through them would feign that they could: every form that
fits nearly as well as the best one widens the interval of a prediction. None is negative, none is
faster than ideal. The interval is Student's, with the counts (not the trials) as observations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf, sqrt
from typing import TYPE_CHECKING

import numpy as np

from harness.stats.estimate import centre
from harness.stats.growth.beyond_measured import FACTOR, Exchange, Largest
from harness.stats.growth.forms import Term, forms
from harness.stats.student import critical_t

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

ALPHA = 0.05
_NEARLY = 2.0
"""A form whose residuals are up to this many times the best one's is as plausible."""


@dataclass(frozen=True)
class MeasuredCount:
    """The time of one step on so many devices, one value per trial."""

    devices: int
    seconds: tuple[float, ...]

    @property
    def middle(self) -> float:
        """Give the geometric mean over trials, as every number of a cell is."""
        return centre(self.seconds)

    @property
    def noise(self) -> float:
        """Give the standard error of the middle, over it; 0 where one trial cannot say."""
        if len(self.seconds) < 2:
            return 0.0
        spread = float(np.std(self.seconds, ddof=1)) / self.middle
        return spread / sqrt(len(self.seconds))


@dataclass(frozen=True)
class NetworkFit:
    """What a sweep of all-reduces says of the network."""

    alpha_s: float
    """Of one message."""
    beta_s: float
    """Of one byte."""


@dataclass(frozen=True)
class Prediction:
    """The time of one step on so many devices."""

    devices: int
    seconds: float
    low: float | None
    high: float | None
    communication: float
    """Share of the time, by the form that fits best."""


@dataclass(frozen=True)
class LargestCountCheck:
    """What the smaller counts would have said of the largest one."""

    predicted: Prediction
    measured: float

    @property
    def holds(self) -> bool | None:
        """Tell whether what was measured lies in the interval; None where there is none."""
        if self.predicted.low is None or self.predicted.high is None:
            return None
        return bool(self.predicted.low <= self.measured <= self.predicted.high)

    @property
    def width(self) -> float:
        """Give the end of the interval over its beginning; an error within it does not show."""
        if self.predicted.low is None or self.predicted.high is None:
            return inf
        return self.predicted.high / self.predicted.low


@dataclass(frozen=True)
class _Fit:
    """One form, fitted."""

    name: str
    terms: tuple[Term, ...]
    computes: int
    """How many of the terms are computing; the rest is communication."""
    factors: Array
    spread: Array
    """(X'X)^-1 of the terms in use, 0 elsewhere."""
    freedom: int
    residual: float
    """Relative, for each degree of freedom."""

    def at(self, devices: int) -> tuple[float, float]:
        """Give the time and communication's part of it."""
        parts = self.factors * self._row(devices)
        return float(parts.sum()), float(parts[self.computes :].sum())

    def reach(self, devices: int, noise: float) -> float:
        """Give half of the interval's width, at least what one degree of freedom would give."""
        row, time = self._row(devices), self.at(devices)[0]
        error = max(self.residual, noise)
        width = error * sqrt(time * time + float(row @ self.spread @ row))
        return critical_t(ALPHA, max(1, self.freedom)) * width

    def _row(self, devices: int) -> Array:
        return np.array([term(float(devices)) for term in self.terms])


@dataclass(frozen=True)
class Growth:
    """How a step's time grows with the devices."""

    counts: tuple[MeasuredCount, ...]
    strong: bool
    """The batch of all devices is the same; else that of each."""
    fits: tuple[_Fit, ...]
    """The plausible ones, best first."""
    noise: float
    exchange: Exchange | None
    """What one exchange takes, where all-reduces of the run say so."""

    @property
    def form(self) -> str:
        """Name the form that fits best, and how many others could not be told from it."""
        others = len(self.fits) - 1
        return self.fits[0].name + (f" ({others} more fit nearly as well)" if others else "")

    @property
    def serial(self) -> float | None:
        """Give Amdahl's share: of one device's time, what more devices do not divide."""
        if not self.strong:
            return None
        divided, rest = (float(one) for one in self.fits[0].factors[:2])
        return rest / (divided + rest) if divided + rest else None

    def predict(self, devices: int) -> Prediction:
        """Give the time of a step on so many devices; without ends where they would say nothing."""
        seconds, communication = self.fits[0].at(devices)
        share = communication / seconds if seconds else 0.0
        if self.fits[0].freedom < 1:
            return Prediction(devices, seconds, None, None, share)
        ends = [(fit.at(devices)[0], fit.reach(devices, self.noise)) for fit in self.fits]
        low = min(time - half for time, half in ends)
        high = max(time + half for time, half in ends)
        if devices > self.counts[-1].devices:
            least, most = self._beyond(devices)
            low, high = min(low, least), max(high, most)
        low = min(max(low, self._ideal(devices)), seconds)
        if high > FACTOR * low:
            return Prediction(devices, seconds, None, None, share)
        return Prediction(devices, seconds, low, high, share)

    def _beyond(self, devices: int) -> tuple[float, float]:
        last = self.counts[-1]
        reach = critical_t(ALPHA, max(1, len(self.counts) - 1)) * self.noise
        largest = Largest(last.devices, last.middle, reach)
        return largest.bounds(devices, strong=self.strong, exchange=self.exchange)

    def _ideal(self, devices: int) -> float:
        """Give the time at the efficiency of the best count, as far as noise lets it be known."""
        ideals = (
            one.middle * (one.devices / devices if self.strong else 1.0) for one in self.counts
        )
        return min(ideals) * (1 - 2 * self.noise)


def fabric(sweep: Sequence[tuple[int, float, float]]) -> NetworkFit | None:
    """Fit alpha and beta to all-reduces: ranks, bytes of the message, seconds."""
    rows = [(2.0 * (p - 1), 2.0 * (p - 1) / p * size, took) for p, size, took in sweep if p > 1]
    if len({size for _, size, _ in rows}) < 2:
        return None
    table = np.array(rows)
    factors, _ = _positive(table[:, :2] / table[:, 2:], np.ones(len(rows)))
    return NetworkFit(float(factors[0]), float(factors[1]))


def grow(
    counts: Sequence[MeasuredCount],
    *,
    strong: bool,
    network: NetworkFit | None = None,
    size: float = 0.0,
) -> Growth | None:
    """Fit the growth of a step's time; None where there are fewer than two counts.

    ``size`` is how many bytes are exchanged in a step; with the network it says how communication
    may grow, and how much of it can come.
    """
    ordered = tuple(sorted(counts, key=lambda one: one.devices))
    if len(ordered) < 2:
        return None
    known = network is not None and size > 0
    exchange = Exchange(network.alpha_s, network.beta_s * size) if network and known else None
    fits = [
        _fitted(ordered, name, terms, 2 if strong else 1)
        for name, terms in forms(strong=strong, exchange=exchange)
        if len(terms) <= len(ordered)
    ]
    noise = max(one.noise for one in ordered)
    # What passes through all counts, having as many terms, proves nothing and is not refuted.
    chosen = sorted(fits, key=lambda o: (o.freedom < 1, o.residual, len(o.terms)))
    most = _NEARLY * max(chosen[0].residual, noise)
    plausible = tuple(one for one in chosen if one.residual <= most)
    return Growth(ordered, strong, plausible, noise, exchange)


def check(
    counts: Sequence[MeasuredCount],
    *,
    strong: bool,
    network: NetworkFit | None = None,
    size: float = 0.0,
) -> LargestCountCheck | None:
    """Predict the largest count from the others; None where there are fewer than three."""
    ordered = sorted(counts, key=lambda one: one.devices)
    fitted = grow(ordered[:-1], strong=strong, network=network, size=size) if ordered else None
    if fitted is None:
        return None
    return LargestCountCheck(fitted.predict(ordered[-1].devices), ordered[-1].middle)


def _fitted(
    counts: Sequence[MeasuredCount], name: str, terms: tuple[Term, ...], computes: int
) -> _Fit:
    times = np.array([one.middle for one in counts])
    rows = np.array([[term(float(one.devices)) for term in terms] for one in counts])
    scaled = rows / times[:, None]
    factors, used = _positive(scaled, np.ones(len(counts)))
    freedom = len(counts) - len(terms)
    wrong = float(((scaled @ factors - 1) ** 2).sum())
    spread = np.zeros((len(terms), len(terms)))
    if used:
        inverse = np.linalg.pinv(scaled[:, used].T @ scaled[:, used])
        spread[np.ix_(used, used)] = inverse
    residual = sqrt(wrong / freedom) if freedom else sqrt(wrong)
    return _Fit(name, terms, computes, factors, spread, freedom, residual)


def _positive(rows: Array, values: Array) -> tuple[Array, list[int]]:
    """Solve for factors that are not negative: try every subset of so few columns."""
    width = rows.shape[1]
    best, support, least = np.zeros(width), list[int](), float(values @ values)
    for many in range(1, width + 1):
        for some in combinations(range(width), many):
            chosen = list(some)
            found = np.linalg.lstsq(rows[:, chosen], values, rcond=None)[0]
            wrong = float(((rows[:, chosen] @ found - values) ** 2).sum())
            if (found >= 0).all() and wrong < least - 1e-15:
                best, support, least = np.zeros(width), chosen, wrong
                best[chosen] = found
    return best, support
