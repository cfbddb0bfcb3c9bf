"""Compare many cells by sign flips whose variances lean on each other.

Six blocks say little of one cell's variance, and the largest |t| of many cells is most often the
one whose variance happens to be small. So each variance is drawn towards what the study's cells
have in common, as limma does (Smyth, Stat. Appl. Genet. Mol. Biol. 3, 2004): the prior's centre and
weight are fitted to the scatter of the logarithms of all variances. Whole blocks are flipped as in
the exact test, but of residuals, made as large as the noise is. The test is then no longer exact:
``SPENT`` of the error is spent, and simulated studies hold the rest (docs/method.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

SPENT = 5 / 8
"""Share of the nominal error at which flips are read; 1/32, what six blocks can tell, of 5 %."""
_HEAVIEST = 3 / 4
"""The prior of very many cells weighs at most as much as this share of a cell's own blocks."""
_SMALLEST = 1e-5
"""A variance below this share of the median one is a coincidence (or a constant)."""


@dataclass(frozen=True)
class Prior:
    """What the variances of all cells have in common, and how many degrees of freedom it weighs."""

    variance: float
    freedom: float

    def moderated(self, variances: Array, freedom: Array) -> Array:
        """Draw variances of so many degrees of freedom towards the common one."""
        pooled: Array = self.freedom * self.variance + freedom * variances
        return np.maximum(pooled / (self.freedom + freedom), 1e-24)


def smallest_p(blocks: int) -> float:
    """Give the smallest p-value that so many blocks can reach."""
    return 2.0 ** (1 - blocks) / SPENT


def common(variances: Array, freedom: Array) -> Prior:
    """Fit the prior to the variances of several cells."""
    cells = len(variances)
    heaviest = _HEAVIEST * float(freedom.min()) * (cells - 1) / cells
    known = np.maximum(variances, max(_SMALLEST * float(np.median(variances)), 1e-24))
    halves = freedom / 2
    logs = np.log(known) - [digamma(half) - log(half) for half in halves]
    excess = float(logs.var(ddof=1)) - float(np.mean([trigamma(half) for half in halves]))
    if excess <= 0:  # the variances scatter no more than those of equal cells do
        return Prior(exp(float(logs.mean())), heaviest)
    half = inverse_trigamma(excess)
    return Prior(exp(float(logs.mean()) + digamma(half) - log(half)), min(2 * half, heaviest))


def intervals(table: Array, flips: Array, alpha: float) -> tuple[Array, Array, Array, Prior]:
    """Give ends of intervals that hold for all cells (rows) together, p-values, and the prior.

    The first of the flips flips nothing: it stands for what was seen.
    """
    present = np.isfinite(table)
    counts = present.sum(axis=1)[:, None].astype(np.float64)
    data = np.where(present, table, 0.0)
    centre = data.sum(axis=1)[:, None] / counts
    # residuals scatter less than the noise, as each cell's own mean is taken out
    residuals = np.where(present, data - centre, 0.0) * np.sqrt(counts / (counts - 1))
    squares = (residuals * residuals).sum(axis=1)[:, None]
    variances = squares / counts
    prior = common(variances[:, 0], counts[:, 0] - 1)
    means = residuals @ flips.T / counts
    flipped = np.maximum(squares - counts * means * means, 0.0) / (counts - 1)
    errors = np.sqrt(prior.moderated(flipped, counts - 1) / counts)
    largest = np.sort((np.abs(means) / errors)[:, 1:].max(axis=0))
    own = np.sqrt(prior.moderated(variances, counts - 1) / counts)
    seen = np.abs(centre) / own * (1 - 1e-9)
    reaching = len(largest) - np.searchsorted(largest, seen[:, 0])
    p: Array = np.minimum((1 + reaching) / len(flips) / SPENT, 1.0)
    beyond = int(alpha * SPENT * len(flips) + 1e-9) - 1
    critical = float(largest[len(largest) - 1 - beyond]) if beyond >= 0 else inf
    return (centre - critical * own)[:, 0], (centre + critical * own)[:, 0], p, prior


def digamma(x: float) -> float:
    """Give the derivative of log Γ, without scipy, whose import costs more than a report."""
    below = 0.0
    while x < 10:
        below += 1 / x
        x += 1
    square = 1 / (x * x)
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square / 240)))
    return log(x) - 0.5 / x - series - below


def trigamma(x: float) -> float:
    """Give the second derivative of log Γ."""
    below = 0.0
    while x < 10:
        below += 1 / (x * x)
        x += 1
    square = 1 / (x * x)
    series = square * (1 / 6 - square * (1 / 30 - square * (1 / 42 - square / 30)))
    return below + 1 / x + square / 2 + series / x


def inverse_trigamma(value: float) -> float:
    """Find where trigamma has a positive value; it falls from infinity to nothing."""
    low, high = 1e-8, 1.0
    while trigamma(high) > value:
        if high > 1e8:
            return high
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if trigamma(middle) > value else (low, middle)
    return (low + high) / 2
