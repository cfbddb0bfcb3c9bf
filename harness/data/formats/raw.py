"""Write raw files: a sample's bytes and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.data.catalogue import Content
from harness.data.contents import Places, Sample

HOLDS = "one"


def suffix(content: Content) -> str:
    """Name files as people do."""
    return ".bin" if content.is_array else ".jpg"


def write(path: Path, samples: Sequence[Sample], first: int, content: Content) -> Places:
    """Write the one sample."""
    del first, content
    (only,) = samples
    path.write_bytes(only.data)
    return [(0, len(only.data))]
