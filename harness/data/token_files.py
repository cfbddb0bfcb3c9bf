"""Read what a user's file of tokens holds: how many, and the highest of them.

Such a file has no header that would say what it is: two bytes a token, the lower one first, as
nanoGPT's prepare.py writes train.bin. All of it is read, once, since a token that a network does
not know may stand anywhere.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError
from harness.units import scaled
from harness.worker.input.dataset import TOKEN_BYTES

ENDING = ".bin"
_CHUNK = 1 << 24
_LLM_C = struct.pack("<i", 20240520)
"""What llm.c's files of tokens begin with (its dev/data/data_common.py)."""


@dataclass(frozen=True)
class Held:
    """What a file holds."""

    tokens: int
    below: int
    """Of a vocabulary of so many all its tokens are."""


def held(path: Path, size: int, doing: Callable[[str], None]) -> Held:
    """Read a file; refuse one that cannot be tokens of two bytes."""
    if size % TOKEN_BYTES:
        raise UsageError(
            f"{path} has {size:,} bytes, and a token takes two: it was cut short, or holds no "
            "16-bit tokens."
        )
    import numpy as np  # plans of other files do without it

    highest, done = -1, 0
    try:
        with path.open("rb") as file:
            if file.read(len(_LLM_C)) == _LLM_C:
                raise UsageError(
                    f"{path} begins with llm.c's header; tokens alone are read: leave out its "
                    "first 1,024 bytes."
                )
            file.seek(0)
            while (some := np.fromfile(file, "<u2", _CHUNK)).size:
                highest = max(highest, int(some.max()))
                done += some.size
                doing(f"{path}: {scaled(TOKEN_BYTES * done, 'B')} of {scaled(size, 'B')} read")
    except OSError as problem:
        raise UsageError(f"{path}: {problem.strerror}.") from None
    if TOKEN_BYTES * done != size:
        raise UsageError(f"{path} changed while it was read.")
    return Held(done, highest + 1)
