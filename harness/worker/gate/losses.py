"""Tell equal losses from different ones, as far as rounding allows."""

from __future__ import annotations

import math
from typing import Sequence

_ROUNDINGS = 4 * 2.0**-24
"""Of fp32: kernels that add up in another order each time make a constant differ by so much."""
_NARROW_BITS = 8
"""Of bf16's significand."""


def are_equal(losses: Sequence[float]) -> bool:
    """Tell whether losses are equal, but for the order in which kernels add up."""
    return max(losses) - min(losses) <= _ROUNDINGS * max(map(abs, losses))


def is_narrow(value: float) -> bool:
    """Tell whether a number has no more digits than bf16 holds: such losses may be equal by chance,
    and honestly stand still for fifty steps.
    """
    if not math.isfinite(value):
        return False
    scaled = math.frexp(value)[0] * 2.0**_NARROW_BITS
    return scaled == int(scaled)
