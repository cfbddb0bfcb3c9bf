"""Write HDF5 files: one data set, named x, whose first dimension counts samples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from harness.data.catalogue import Content
from harness.data.contents import Places, Sample
from harness.errors import Unavailable

HOLDS = "shard"


def suffix(content: Content) -> str:
    """Name files as people do."""
    del content
    return ".h5"


def write(path: Path, samples: Sequence[Sample], first: int, content: Content) -> Places:
    """Write the samples without chunks: each is a plain stretch of the file."""
    del first
    try:
        import h5py
    except ImportError:
        raise Unavailable("HDF5 files are made with h5py: pip install h5py") from None
    data = np.frombuffer(b"".join(one.data for one in samples), content.dtype)
    with h5py.File(path, "w", libver="latest", track_order=False) as file:
        made = file.create_dataset(
            "x", data=data.reshape(len(samples), *content.shape), track_times=False
        )
        file.flush()
        start = made.id.get_offset()
    size = len(samples[0].data)
    return [(start + number * size, size) for number in range(len(samples))]
