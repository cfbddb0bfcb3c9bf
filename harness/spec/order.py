"""This file orders trials: seeded random blocks, each with every cell once.

Drift then hits all cells alike, and cells are compared within a block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def interleaved(keys: Sequence[str], *, trials: int, seed: int) -> tuple[tuple[str, int], ...]:
    """Give (cell key, block) in the order of running; blocks count from 1.

    Each block is shuffled by itself, through a digest and not through ``random``, so that the order
    is the same under every version of Python, and adding a cell leaves the others' order alone.
    """
    return tuple(
        (key, block)
        for block in range(1, trials + 1)
        for key in sorted(keys, key=lambda key: _draw(seed, block, key))
    )


def _draw(seed: int, block: int, key: str) -> bytes:
    return hashlib.sha256(f"{seed}/{block}/{key}".encode()).digest()
