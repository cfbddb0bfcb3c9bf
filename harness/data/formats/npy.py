"""Write .npy files: one array; where it holds several samples, they come first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from harness.data.catalogue import Content
from harness.data.contents import Places, Sample

HOLDS = "together"


def suffix(content: Content) -> str:
    """Name files as numpy does."""
    del content
    return ".npy"


def write(path: Path, samples: Sequence[Sample], first: int, content: Content) -> Places:
    """Write the samples as one array."""
    del first
    shape = content.shape if content.together == 1 else (len(samples), *content.shape)
    data = np.frombuffer(b"".join(one.data for one in samples), content.dtype).reshape(shape)
    with path.open("wb") as file:
        np.lib.format.write_array(file, data, allow_pickle=False)
    size = len(samples[0].data)
    start = path.stat().st_size - size * len(samples)
    return [(start + number * size, size) for number in range(len(samples))]
