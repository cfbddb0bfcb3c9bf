"""Find by simulation the smallest differences that comparisons find nine times in ten.

``python -m tests.stats.power_table`` prints the table of ``harness/stats/power.py``, in a few
minutes of one core. A difference moves an interval and changes nothing else, so that one study
without any says how large it would have to be.
"""

from __future__ import annotations

import sys
from math import log

import numpy as np

from harness.stats.compare import compare
from harness.stats.power import BLOCKS, COMPARED, OFTEN

_NOISE = 1e-3
"""So little that no difference sought here is too small to matter."""
_WANTED = 12_000
"""Intervals behind each number."""


def smallest(compared: int, blocks: int, intervals: int = _WANTED) -> float:
    """Give the difference that is found ``OFTEN``, in deviations of one trial."""
    chance = np.random.default_rng((compared, blocks))
    needed: list[float] = []
    while len(needed) < intervals:
        trials = _NOISE * chance.standard_normal((compared + 1, blocks))
        ratios = trials[1:] - trials[0]
        told = compare({str(place): list(row) for place, row in enumerate(ratios)})
        needed += [-log(one.low) / _NOISE for one in told.values() if one.low is not None]
    return float(np.quantile(needed, OFTEN))


if __name__ == "__main__":
    for compared in COMPARED:
        row = ", ".join(f"{smallest(compared, blocks):.2f}" for blocks in BLOCKS)
        sys.stdout.write(f"    ({row}),\n")
        sys.stdout.flush()
