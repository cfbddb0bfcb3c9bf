"""Order trials: seeded random blocks, each with every cell once.

Drift then hits all cells alike, and cells are compared within a block. Block 0, if there is one, is
the pilot that chooses the reference.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from harness.store.layout import PILOT


def interleaved(
    keys: Sequence[str], *, trials: int, seed: int, piloted: Sequence[str] = ()
) -> tuple[tuple[str, int], ...]:
    """Give (cell key, block) in the order of running; blocks count from 1.

    The cells of ``piloted`` run once more before, in block 0.

    Each block is shuffled by itself, through a digest and not through ``random``, so that the order
    is the same under every version of Python, and adding a cell leaves the others' order alone.
    """
    return tuple(
        (key, block)
        for block in range(PILOT, trials + 1)
        for key in shuffled(piloted if block == PILOT else keys, seed, block)
    )


def shuffled(keys: Iterable[str], seed: int, *place: int) -> tuple[str, ...]:
    """Give cells in the random order of a place: a block, or a block and a round of it."""
    begin = "/".join(map(str, (seed, *place)))
    return tuple(sorted(keys, key=lambda key: hashlib.sha256(f"{begin}/{key}".encode()).digest()))
