"""Give all trials of a cell one beginning of their steady state.

A program warms up alike in each of its trials, and one trial's windows cannot tell a warm-up from a
neighbour that left. So a beginning is left out only where most trials of a cell have one, and as
much of each: cuts that differ from trial to trial would let different parts of one slow decay into
each, and widen every interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from harness.stats.windows import steady
from harness.stats.windows.shape import Steady
from harness.verdicts.results import TrialResult

_ALONE = Steady(0, "all windows: most other trials of this cell had no warm-up left in them", True)


def shared(
    trials: Sequence[TrialResult], read_times: Callable[[], Sequence[NDArray[np.float64]]]
) -> Steady | None:
    """Give the beginning that a cell's trials share; None where each has the right one already.

    ``read_times`` reads the windows of all of them, which is seldom needed.
    """
    begun = [trial for trial in trials if trial.steady_from is not None and trial.input is None]
    slow = [trial for trial in begun if trial.steady_from]
    if not slow or len(begun) < 2:
        return None
    return _of_all(read_times()) if 2 * len(slow) > len(begun) else _ALONE


def _of_all(times: Sequence[NDArray[np.float64]]) -> Steady:
    """Look for the beginning in what the trials have in common, where noise is least."""
    count = min(len(one) for one in times)
    courses = [np.log(one[:count]) - np.log(np.median(one)) for one in times]
    found = steady.begin(np.exp(np.median(courses, axis=0)))
    return replace(found, why=f"{found.why}, in all {len(times)} trials of the cell together")
