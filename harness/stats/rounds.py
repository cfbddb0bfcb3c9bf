"""Compare two cells in one block in which they took turns.

Each round holds one turn of both, seconds apart, so what the machine did meanwhile multiplied both
alike and cancels in the round's ratio. The block's ratio is the median over its rounds: a burst in
one turn does not move it. The block stays the unit of every test, because the processes are the
same in all of its rounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log

from harness.stats.estimate import median

FEWEST_ROUNDS = 3
"""A block in which two cells have fewer rounds in common does not count for them, unless their
steps are so long that fewer were planned."""


def block_log_ratio(
    cell: Mapping[int, float], reference: Mapping[int, float], *, planned: int
) -> float | None:
    """Give the median log ratio of two cells' rates by round; None of too few common rounds."""
    common = cell.keys() & reference.keys()
    if len(common) < max(1, min(FEWEST_ROUNDS, planned)):
        return None
    return median([log(cell[number] / reference[number]) for number in common])
