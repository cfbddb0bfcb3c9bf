"""Put a timeline's readings on an even grid, as finely as its clocks and the chart allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

from harness.analysis.evidence import Channel, Mark, Timeline

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.float64]]

BINS = 760
"""The columns of a map; beside them, so many steps can be told apart:"""
MOST_STEPS = 228
_TOUCHING = 0.01
"""Such a share of an interval before the first reading is not worth a column."""


@dataclass(frozen=True)
class BinnedTimeline:
    """A timeline on an even grid: one row per channel, a gap is not a number."""

    start_s: float
    width_s: float
    mean: Array
    low: Array
    high: Array
    raw: bool
    """Whether each bin holds one reading, so that low, mean and high are the same."""

    @property
    def stop_s(self) -> float:
        """Say where the last bin ends."""
        return float(self.start_s + self.width_s * self.mean.shape[1])


def _ends(timeline: Timeline) -> tuple[float, float]:
    """Begin and end where readings or marks do, whole intervals from the first reading."""
    starts = [channel.times_s[0] for channel in timeline.channels if len(channel.times_s)]
    stops = [channel.times_s[-1] for channel in timeline.channels if len(channel.times_s)]
    first, step = min(starts, default=0.0), timeline.interval_s
    stop = max(stops, default=0.0) + step
    before = first - min((mark.start_s for mark in timeline.marks), default=first)
    beyond = max((mark.end_s for mark in timeline.marks), default=stop) - stop
    start = first - step * max(0, ceil(before / step - _TOUCHING))
    return start, stop + step * max(0, ceil(beyond / step - _TOUCHING))


def binned(timeline: Timeline, most_bins: int) -> BinnedTimeline:
    """Put readings into at most so many even bins, never narrower than the clocks allow."""
    import numpy as np

    start, stop = _ends(timeline)
    finest = max(timeline.interval_s, timeline.clock_bound_s or 0.0)
    bins = max(1, min(most_bins, round((stop - start) / finest)))
    width = (stop - start) / bins
    shape = (len(timeline.channels), bins)
    mean, low, high = np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape, np.nan)
    for row, channel in enumerate(timeline.channels):
        _fill(channel, start, width, mean[row], low[row], high[row])
    return BinnedTimeline(
        start, width, mean, low, high, raw=bool(np.array_equal(low, high, equal_nan=True))
    )


def _fill(
    channel: Channel, start: float, width: float, mean: Array, low: Array, high: Array
) -> None:
    import numpy as np

    times = np.asarray(channel.times_s, dtype=np.float64)
    values = np.asarray(channel.values, dtype=np.float64)
    known = np.isfinite(values)
    for begin, end in channel.gaps_s:
        known &= ~((times > begin) & (times < end))
    at = ((times[known] - start) / width + 1e-9).astype(np.int64).clip(0, len(mean) - 1)
    values = values[known]
    count = np.bincount(at, minlength=len(mean))
    filled = count > 0
    mean[filled] = np.bincount(at, weights=values, minlength=len(mean))[filled] / count[filled]
    low[filled], high[filled] = np.inf, -np.inf
    np.minimum.at(low, at, values)
    np.maximum.at(high, at, values)


def steps_apart(marks: Sequence[Mark], most: float = MOST_STEPS) -> list[Mark]:
    """Give the steps to mark, unless they lie too dense to be told apart."""
    steps = [mark for mark in marks if mark.kind == "step"]
    return steps if len(steps) <= most else []
