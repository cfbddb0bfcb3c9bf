"""Give percentiles of step times, of windows of one size and where there are enough of them.

A window of fifty steps hides what a window of one shows. So what a phase's or an epoch's end cut
short is left out, and of a cell only trials with the commonest size of window have percentiles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.store.events.rank_streams import Stream
from harness.verdicts.results import TrialResult

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness.stats.windows.shape import Shape

FEWEST_OF_P95 = 20
FEWEST_OF_P99 = 100
"""With fewer windows a percentile would be the slowest one under another name."""


@dataclass(frozen=True)
class StepPercentiles:
    """Times of one step that so many of the windows keep."""

    steps_per_window: int
    p50_s: float
    p95_s: float | None
    p99_s: float | None


def percentiles(
    streams: Sequence[Stream], times: NDArray[np.float64], start: int, shape: Shape | None
) -> StepPercentiles:
    """Give those of the steady windows; their ``shape`` has them where all windows are whole."""
    import numpy as np

    size = max(int(stream.steps.max()) for stream in streams)
    whole = np.all([stream.steps[start : len(times)] == size for stream in streams], axis=0)
    count = int(whole.sum())
    chosen = times[start:][whole] if count else times[start:]
    if shape is not None and len(chosen) == len(whole):
        middle, late, latest = shape.p50_s, shape.p95_s, shape.p99_s
    else:
        middle, late, latest = np.quantile(chosen, (0.5, 0.95, 0.99)).tolist()
    return StepPercentiles(
        size,
        middle,
        late if count >= FEWEST_OF_P95 else None,
        latest if count >= FEWEST_OF_P99 else None,
    )


def of_one_size(trials: Sequence[TrialResult]) -> tuple[TrialResult, ...]:
    """Leave the percentiles to those trials of a cell whose windows have the commonest size."""
    sizes = Counter(one.steps_per_window for one in trials if one.steps_per_window is not None)
    if len(sizes) < 2:
        return tuple(trials)
    commonest = max(sizes, key=lambda size: (sizes[size], size))
    return tuple(
        one
        if one.steps_per_window in (None, commonest)
        else replace(one, p50_s=None, p95_s=None, p99_s=None)
        for one in trials
    )
