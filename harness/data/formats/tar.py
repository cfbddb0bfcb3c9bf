"""Write tar shards: a member per sample, named by its number, in the ustar format."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

from harness.data.catalogue import Content
from harness.data.contents import Places, Sample

HOLDS = "shard"


def suffix(content: Content) -> str:
    """Name files as people do."""
    del content
    return ".tar"


def write(path: Path, samples: Sequence[Sample], first: int, content: Content) -> Places:
    """Write one member after the other."""
    end = ".bin" if content.is_array else ".jpg"
    places = []
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for number, one in enumerate(samples, first):
            member = tarfile.TarInfo(f"{number:09d}{end}")
            member.size = len(one.data)
            archive.addfile(member, io.BytesIO(one.data))
            blocks = -(-member.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
            places.append((archive.offset - blocks, member.size))
    return places
