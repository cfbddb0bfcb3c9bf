"""Write an LMDB of Caffe's own messages, which its Data layer reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.data.catalogue import Content
from harness.data.contents import Places, Sample
from harness.data.formats import lmdb
from harness.worker.input.datum import head

HOLDS = "all"
suffix = lmdb.suffix


def write(path: Path, samples: Sequence[Sample], first: int, content: Content) -> Places:
    """Put every sample under its number, in order, its class with it."""
    messages = []
    for one in samples:
        assert isinstance(one.target, int)
        messages.append(Sample(head(content.shape, one.target) + one.data, one.target))
    return lmdb.write(path, messages, first, content)
