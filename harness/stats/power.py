"""Say before anything is measured how small a difference a comparison will find.

The numbers were simulated once with the method itself (``tests/stats/power_table.py``) and lie in
``power.json``, so that a plan needs no numerics. Between the numbers of the table it is the safer
one's: more cells, fewer blocks.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from functools import cache
from math import expm1, log1p
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("power.json")
OFTEN = 0.9
"""How often a difference is to be found that is said to be found."""
SELDOM = 0.1
"""A difference that is found no more often than that might as well not be sought."""


def smallest_difference(
    compared: int, blocks: int, scatter: float, *, share: float = OFTEN, is_look: bool = False
) -> float:
    """Give the smallest relative difference that is found with a share of studies.

    ``scatter`` is the standard deviation of one trial's logarithm. ``is_look``: looked at until
    everything is answered, which shares the error.
    """
    needed = _needed(compared, blocks, is_look=is_look)
    return expm1(needed[_table()["shares"].index(share)] * scatter)


def power(
    compared: int, blocks: int, difference: float, scatter: float, *, is_look: bool = False
) -> float:
    """Give the share of studies in which a relative difference is found."""
    shares, needed = _table()["shares"], _needed(compared, blocks, is_look=is_look)
    seen = log1p(difference) / scatter
    above = bisect_right(needed, seen)
    if above == 0:
        return float(shares[0] * seen / needed[0])
    if above == len(needed):
        return float(shares[-1])
    low, high = needed[above - 1], needed[above]
    within = (seen - low) / (high - low)
    return float(shares[above - 1] + within * (shares[above] - shares[above - 1]))


def last_look(blocks: int) -> int | None:
    """Give the last look of the table that so many blocks reach; None where they reach none."""
    return max((look for look in _table()["looks"] if look <= blocks), default=None)


def _needed(compared: int, blocks: int, *, is_look: bool) -> list[float]:
    table = _table()
    columns = table["looks" if is_look else "blocks"]
    rows = table["needed_at_looks" if is_look else "needed"]
    row = min(bisect_left(table["compared"], compared), len(rows) - 1)
    found: list[float] = rows[row][bisect_right(columns, blocks) - 1]
    return found


@cache
def _table() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return content
