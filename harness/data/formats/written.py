"""Say what a format's writer gives back: where each sample lies in the file it wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from harness.data.catalogue import Content
from harness.data.contents import Sample

Places = list[tuple[int, int]] | None
"""Offset and length of each sample, where each is a plain stretch of the file; else None."""
Write = Callable[[Path, Sequence[Sample], int, Content], Places]
"""Write samples, the first of which has the given number, into one file."""
