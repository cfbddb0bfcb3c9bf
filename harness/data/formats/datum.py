"""Write an LMDB of Caffe's own messages, which its Data layer reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.data.catalogue import Content
from harness.data.contents import Places, Sample
from harness.data.formats import lmdb
from harness.worker.input.datum import encoded_head, head

HOLDS = "all"
suffix = lmdb.suffix


def write(path: Path, samples: Sequence[Sample], first: int, content: Content) -> Places:
    """Put every sample under its number, in order, its class with it."""
    messages = [Sample(before(content, one) + one.data, one.target) for one in samples]
    return lmdb.write(path, messages, first, content)


def before(content: Content, one: Sample) -> bytes:
    """Give the part of a picture's message that its bytes follow."""
    assert isinstance(one.target, int)
    if content.is_array:
        return head(content.shape, one.target)
    return encoded_head(len(one.data), one.target)
