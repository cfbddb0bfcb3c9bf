"""Find by simulation how large a difference has to be for comparisons to find it.

``python -m tests.stats.power_table`` writes ``harness/stats/power.json``, in ten minutes of one
core; its seeds are the places in the table. A difference moves an interval and changes nothing
else, so that one study without any says how large it would have to be.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from harness.stats import power
from harness.stats.answers import ALPHA, FEWEST_BLOCKS
from harness.stats.compare import compare, declared_looks

_NOISE = 1e-3
"""So little that logarithms are the differences."""
_WANTED = 12_000
"""Intervals behind each number, at least."""
_STUDIES = 100
"""Studies behind each number, at least: the cells of one are not independent."""
COMPARED = (1, 2, 5, 10, 20, 50)
BLOCKS = (6, 7, 8, 10, 12, 15, 20, 30)
LOOKS = declared_looks(FEWEST_BLOCKS, 30)
SHARES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.99)


def needed(
    compared: int, blocks: int, intervals: int = _WANTED, *, is_look: bool = False
) -> list[float]:
    """Give the differences that are found with each of ``SHARES``, in deviations of one trial.

    ``is_look``: at one of the looks until everything is answered, which share the error.
    """
    chance = np.random.default_rng((compared, blocks, is_look))
    is_sequence = is_look and compared == 1
    alpha = ALPHA / len(LOOKS) if is_look and not is_sequence else ALPHA
    found: list[float] = []
    while len(found) < max(intervals, _STUDIES * compared):
        trials = _NOISE * chance.standard_normal((compared + 1, blocks))
        rows = {str(place): list(row) for place, row in enumerate(trials[1:] - trials[0])}
        told = compare(rows, alpha=alpha, at_any_time=is_sequence).values()
        found += [-np.log(one.low) / _NOISE for one in told if one.low is not None]
    return [float(one) for one in np.quantile(found, SHARES)]


def _table(blocks: Sequence[int], intervals: int, *, is_look: bool) -> list[list[list[float]]]:
    rows = []
    for compared in COMPARED:
        row = [needed(compared, count, intervals, is_look=is_look) for count in blocks]
        rows.append([[round(one, 3) for one in shares] for shares in row])
        if len(rows) > 2:  # of several cells, more never find less: what chance says else is undone
            rows[-1] = [list(map(max, *pair)) for pair in zip(rows[-1], rows[-2], strict=True)]
        sys.stderr.write(f"{compared} compared{', at looks' * is_look}\n")
    return rows


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--intervals", type=int, default=_WANTED)
    intervals = parser.parse_args().intervals
    content = {
        "made_by": f"python -m tests.stats.power_table --intervals {intervals}",
        "shares": SHARES,
        "compared": COMPARED,
        "blocks": BLOCKS,
        "needed": _table(BLOCKS, intervals, is_look=False),
        "looks": LOOKS,
        "needed_at_looks": _table(LOOKS, intervals, is_look=True),
    }
    Path(power.FILE).write_text(json.dumps(content) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
