"""Write .npz files: archives of one array, named x, stored as ``numpy.savez`` does.

Archives carry no time of their own, so that equal samples make equal files.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from harness.data.catalogue import Content
from harness.data.contents import Places, Sample

HOLDS = "together"


def suffix(content: Content) -> str:
    """Name files as numpy does."""
    del content
    return ".npz"


def write(path: Path, samples: Sequence[Sample], first: int, content: Content) -> Places:
    """Write the samples as one array."""
    del first
    shape = content.shape if content.together == 1 else (len(samples), *content.shape)
    data = np.frombuffer(b"".join(one.data for one in samples), content.dtype).reshape(shape)
    array = io.BytesIO()
    np.lib.format.write_array(array, data, allow_pickle=False)
    entry = zipfile.ZipInfo("x.npy", date_time=(1980, 1, 1, 0, 0, 0))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(entry, array.getbuffer())
    return None
