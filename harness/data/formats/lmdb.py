"""Write an LMDB: one file of all samples, under their numbers in nine digits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.data.catalogue import Content
from harness.data.contents import Places, Sample
from harness.errors import Unavailable

HOLDS = "all"
_BATCH = 256
"""Samples in one transaction."""


def suffix(content: Content) -> str:
    """Name files as people do."""
    del content
    return ".mdb"


def write(path: Path, samples: Sequence[Sample], first: int, content: Content) -> Places:
    """Put every sample under its number, in order."""
    del content
    try:
        import lmdb
    except ImportError:
        raise Unavailable("an LMDB is made with lmdb: pip install lmdb") from None
    size = sum(len(one.data) + 8192 for one in samples) * 5 // 4 + (1 << 20)
    path.unlink(missing_ok=True)
    with lmdb.open(str(path), subdir=False, map_size=size, lock=False) as made:
        for start in range(0, len(samples), _BATCH):
            with made.begin(write=True) as transaction:
                for number, one in enumerate(samples[start : start + _BATCH], start):
                    transaction.put(b"%09d" % (first + number), one.data, append=True)
    return None
