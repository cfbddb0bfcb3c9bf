"""Read files of tokens: a text is a window of a mapped file, with the token behind it.

The file is mapped anew for each text, as nanoGPT does for each batch: what stays mapped cannot be
dropped from the page cache, and counts as memory of the process.
"""

from __future__ import annotations

import mmap
import os

from harness.worker.input.byte_ranges import copied
from harness.worker.input.dataset import Dataset


class Tokens:
    """Files that stay open."""

    def __init__(self, dataset: Dataset) -> None:
        self._stretch = dataset.stretch
        self._open = {path: os.open(path, os.O_RDONLY) for path in dataset.paths}

    def read(self, sample: int, into: memoryview) -> int:
        """Copy one text and the token behind it."""
        path, offset, length = self._stretch(sample)
        with mmap.mmap(self._open[path], 0, prot=mmap.PROT_READ) as pages:
            return copied(pages, offset, into[:length])


def open(dataset: Dataset) -> Tokens:  # noqa: A001 - the contract's name
    """Open a set."""
    return Tokens(dataset)
