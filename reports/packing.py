"""This file packs timelines into a page: binned to a budget, quantised, delta-coded, compressed.

A page decodes it with ``DecompressionStream``: gzip, then two byte planes (all low bytes, then all
high bytes) of 16-bit numbers, each row of them stored as differences modulo 65536. 65535 is a gap;
any other code is ``low + code / 65534 * (high - low)``.
"""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reports.evidence import Channel, Timeline

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.float64]]

MOST_NUMBERS = 1_200_000
"""What one page may carry: at most 3.2 MB, however little it compresses."""
_GAP = 65535
_TOP = 65534


@dataclass(frozen=True)
class Binned:
    """A timeline on an even grid: one row per channel, a gap is not a number."""

    start_s: float
    width_s: float
    mean: Array
    low: Array
    high: Array
    raw: bool
    """Whether each bin holds one reading, so that low, mean and high are the same."""


def _ends(timeline: Timeline) -> tuple[float, float]:
    starts = [channel.times_s[0] for channel in timeline.channels if len(channel.times_s)]
    stops = [channel.times_s[-1] for channel in timeline.channels if len(channel.times_s)]
    return min(starts, default=0.0), max(stops, default=0.0) + timeline.interval_s


def binned(timeline: Timeline, most_bins: int) -> Binned:
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
    return Binned(
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


def _codes(rows: Array, low: float, high: float) -> Any:
    import numpy as np

    scaled = (rows - low) / ((high - low) or 1.0) * _TOP
    codes = np.where(np.isnan(rows), _GAP, np.clip(np.nan_to_num(scaled).round(), 0, _TOP))
    whole = codes.astype(np.uint16)
    return np.diff(whole, axis=1, prepend=np.zeros((len(whole), 1), np.uint16)).astype("<u2")


def packed(timeline: Timeline, most_numbers: int) -> str:
    """Write a timeline as the JSON that the page's script unpacks."""
    import numpy as np

    rows = max(1, len(timeline.channels))
    grid = binned(timeline, most_numbers // rows)
    kinds = [grid.mean]
    if not grid.raw:
        grid = binned(timeline, most_numbers // (3 * rows))
        kinds = [grid.mean, grid.low, grid.high]
    read = np.concatenate([grid.low[np.isfinite(grid.low)], grid.high[np.isfinite(grid.high)]])
    low, high = (float(read.min()), float(read.max())) if read.size else (0.0, 0.0)
    differences = np.concatenate([_codes(kind, low, high) for kind in kinds]).ravel()
    planes = differences.view(np.uint8).reshape(-1, 2).T.tobytes()
    told = {
        "unit": timeline.unit,
        "names": [channel.name for channel in timeline.channels],
        "start": grid.start_s,
        "width": grid.width_s,
        "bins": grid.mean.shape[1],
        "kinds": len(kinds),
        "low": low,
        "high": high,
        "data": base64.b64encode(gzip.compress(planes, 6, mtime=0)).decode(),
    }
    # Inside a script element only "<" could end it.
    return json.dumps(told, separators=(",", ":")).replace("<", "\\u003c")
