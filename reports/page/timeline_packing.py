"""Pack timelines into a page: every reading if it fits, quantised, compressed.

A page decodes it with ``DecompressionStream``: gzip, then two byte planes (all low bytes, then all
high bytes) of 16-bit codes, each row of them stored as differences modulo 65536, the small ones of
both signs first (0, -1, 1, -2 …). A row has its own ``[low, quantum]``: a code is ``low + code *
quantum``. 65535 is a gap; 65534 is a value so far out that it would coarsen all others, and stands
as it is in ``far``, in the order of rows and bins.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.analysis import numbers
from harness.analysis.evidence import Timeline
from harness.analysis.timelines.time_grid import BinnedTimeline, binned

if TYPE_CHECKING:
    from harness.analysis.timelines.time_grid import Array

MOST_CHARACTERS = 3_600_000
"""What the timelines of one page may take, all together."""
_UNREAD = 10_000
"""So many intervals without a reading take next to nothing once compressed."""
_GAP = 65535
_FAR = 65534
_FINE, _COARSE = 65533, 250
"""Codes of a row: as many as there are, or as many as a chart's height can show."""
_CHARACTERS = 8 / 3
"""What a 16-bit code takes if nothing compresses."""
_EXACT = (1.0, 0.1, 0.01, 0.001)
"""Quanta in which instruments report; where all readings are multiples of one, none is rounded."""
_USUAL_PERCENT = 0.5
_SPREAD = 8.0
"""A row reaching farther than this many usual spreads has its farthest values written out."""


def _ends_of(known: Array) -> tuple[float, float]:
    """Choose what a row's codes span: everything, but for values far beyond the usual ones."""
    import numpy as np

    least, most = float(known.min()), float(known.max())
    low, high = np.percentile(known, [_USUAL_PERCENT, 100 - _USUAL_PERCENT])
    reach = _SPREAD * float(high - low)
    if most - least <= reach or reach == 0:
        return least, most
    inside = known[(known >= low - reach) & (known <= high + reach)]
    return float(inside.min()), float(inside.max())


def _quantum(inside: Array, low: float, high: float, codes: int) -> float:
    """Choose the instrument's own step if the row keeps to one, else the finest that fits."""
    import numpy as np

    for step in _EXACT:
        steps = (inside - low) / step
        if (high - low) / step <= codes and np.abs(steps - steps.round()).max() < 1e-6:
            return step
    return (high - low) / codes or 1.0


@dataclass(frozen=True)
class _Row:
    """One line of numbers as the page carries it."""

    low: float
    quantum: float
    differences: Any
    far: list[float]


def _row(values: Array, most_codes: int) -> _Row:
    import numpy as np

    known = np.isfinite(values)
    codes = np.full(len(values), _GAP, np.uint16)
    low, quantum, far = 0.0, 1.0, []
    if known.any():
        low, high = _ends_of(values[known])
        inside = known & (values >= low) & (values <= high)
        quantum = _quantum(values[inside], low, high, most_codes)
        codes[inside] = ((values[inside] - low) / quantum).round().clip(0, most_codes)
        codes[known & ~inside] = _FAR
        far = [float(f"{value:.9g}") for value in values[known & ~inside]]
    differences = np.diff(codes, prepend=np.uint16(0)).view(np.int16)
    folded = ((differences << 1) ^ (differences >> 15)).astype("<u2")
    return _Row(low, quantum, folded, far)


def packed(timeline: Timeline, most_characters: int) -> str:
    """Write a timeline as the JSON that the page's script unpacks; ``shown`` says what is in it.

    Every reading if that fits; else every reading as finely as a chart can show it; else bins.
    """
    readings = sum(len(channel.times_s) for channel in timeline.channels)
    finest = binned(timeline, readings + _UNREAD)
    if finest.raw and finest.width_s <= timeline.interval_s * 1.01:
        every = f"every reading, one each {timeline.interval_s:.3g} s"
        coarsely = f"{every}, to {100 / _COARSE:.1f} % of its line's range"
        for codes, shown in ((_FINE, every), (_COARSE, coarsely)):
            text = _written(timeline, finest, codes, shown)
            if len(text) <= most_characters:
                return text
    bins = int(most_characters / _CHARACTERS / 3 / max(1, len(timeline.channels)))
    grid = binned(timeline, bins)
    width = numbers.seconds(grid.width_s)
    return _written(timeline, grid, _FINE, f"least, mean and most of each {width}")


def _written(timeline: Timeline, grid: BinnedTimeline, codes: int, shown: str) -> str:
    import numpy as np

    kinds = [grid.mean] if grid.raw else [grid.mean, grid.low, grid.high]
    rows = [_row(values, codes) for kind in kinds for values in kind]
    differences = np.concatenate([row.differences for row in rows])
    planes = differences.view(np.uint8).reshape(-1, 2).T.tobytes()
    told = {
        "shown": shown,
        "unit": timeline.unit,
        "names": [channel.name for channel in timeline.channels],
        "start": grid.start_s,
        "width": grid.width_s,
        "bins": grid.mean.shape[1],
        "kinds": len(kinds),
        "rows": [[row.low, row.quantum] for row in rows],
        "far": [value for row in rows for value in row.far],
        "data": base64.b64encode(gzip.compress(planes, 6, mtime=0)).decode(),
    }
    # Inside a script element only "<" could end it.
    return json.dumps(told, separators=(",", ":")).replace("<", "\\u003c")


def packed_together(timelines: Sequence[Timeline], most_characters: int) -> list[str]:
    """Pack all timelines of a page; what a small one leaves of its share, larger ones may use."""
    told = [""] * len(timelines)
    readings = [sum(len(channel.times_s) for channel in one.channels) for one in timelines]
    left = most_characters
    for done, at in enumerate(sorted(range(len(timelines)), key=readings.__getitem__)):
        told[at] = packed(timelines[at], left // (len(timelines) - done))
        left -= len(told[at])
    return told
