"""Say before anything is measured how small a difference a comparison will find.

The numbers were simulated once with the method itself (``tests/stats/power_table.py``), so that a
plan needs no numerics.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import expm1

OFTEN = 0.9
"""How often a difference of that size is found."""
COMPARED = (1, 2, 5, 10, 20, 50)
BLOCKS = (6, 7, 8, 10, 12, 15, 20, 30)
_DEVIATIONS = (
    (3.02, 2.21, 1.95, 1.66, 1.46, 1.27, 1.08, 0.86),
    (2.81, 2.42, 2.16, 1.82, 1.64, 1.43, 1.21, 0.98),
    (2.91, 2.51, 2.25, 1.95, 1.74, 1.53, 1.32, 1.05),
    (3.02, 2.61, 2.36, 2.04, 1.83, 1.62, 1.37, 1.11),
    (3.11, 2.73, 2.51, 2.13, 1.92, 1.69, 1.43, 1.15),
    (3.30, 2.90, 2.60, 2.28, 2.06, 1.79, 1.52, 1.22),
)
"""The difference in deviations of one trial: a row for so many cells beside the reference, a column
for so many blocks."""


def smallest_difference(compared: int, blocks: int, scatter: float) -> float:
    """Give the smallest relative difference that is found, where trials scatter by so much.

    Between the numbers of the table it is the safer one's: more cells, fewer blocks.
    """
    row = min(bisect_left(COMPARED, compared), len(COMPARED) - 1)
    column = bisect_right(BLOCKS, blocks) - 1
    return expm1(_DEVIATIONS[row][column] * scatter)
