"""Write tokens end to end, two bytes each, the lower one first, as nanoGPT's prepare.py does."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.data.catalogue import Content

HOLDS = "all"


def suffix(content: Content) -> str:
    """Name files as nanoGPT does."""
    del content
    return ".bin"


def write(path: Path, blocks: Iterable[npt.NDArray[np.uint16]]) -> None:
    """Write blocks of tokens one behind the other."""
    with path.open("wb") as file:
        for block in blocks:
            file.write(block.tobytes())
