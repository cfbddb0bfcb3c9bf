"""Guess what a data set takes, and refuse one that would fill its disk."""

from __future__ import annotations

import shutil
from pathlib import Path

from harness.data.catalogue import Content
from harness.data.sets import DataSetSpec
from harness.errors import BakeoffError
from harness.units import scaled

_KEPT_FREE = 1 << 30
"""What creating leaves of a disk at least, or a twentieth of a small one: others live there too."""
_BLOCK = 4096
"""What file systems and LMDB give space in."""
_HEAD = 16
"""Of an LMDB's page, before the value that fills it."""


def expected_bytes(spec: DataSetSpec, content: Content, holds: str) -> int:
    """Guess how much a set takes: an eighth more than its samples, for what surrounds them."""
    each = content.median_bytes
    if content.is_text:
        return spec.samples * each
    is_alone = holds == "one" or (holds == "together" and content.together == 1)
    if is_alone or holds == "all":
        if content.is_array:
            each = -(-(each + _HEAD) // _BLOCK) * _BLOCK
        else:  # of any size: half of a last block is empty
            each = max(_BLOCK, each + _BLOCK // 2)
    return spec.samples * each * 9 // 8


def refuse_to_fill(folder: Path, needed: int) -> None:
    """Refuse what would leave too little of the disk that a folder is to lie on."""
    there = next(one for one in (folder, *folder.parents) if one.exists())
    try:
        disk = shutil.disk_usage(there)
    except OSError as problem:
        raise BakeoffError(f"{folder} cannot be made: {problem.strerror}.") from None
    reserve = min(_KEPT_FREE, disk.total // 20)
    if needed + reserve > disk.free:
        raise BakeoffError(
            f"{folder} would take about {scaled(needed, 'B')}, and {scaled(disk.free, 'B')} are "
            f"free, of which {scaled(reserve, 'B')} stay so. "
            "Ask for fewer --samples or another tier."
        )
