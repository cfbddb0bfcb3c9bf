"""Read sets of .npy files: each is one array, whose first dimension counts samples.

The format is numpy's own, version 1 to 3 (numpy.lib.format): a magic word, the header's length,
the header as a Python literal, then the array. A file of one sample has no dimension to count.
"""

from __future__ import annotations

import ast
import os
import struct
from typing import Any, Dict, NamedTuple

from harness.worker.input.byte_ranges import read_whole
from harness.worker.input.dataset import Dataset

MAGIC = b"\x93NUMPY"


class Header(NamedTuple):
    """What the first bytes of a file say."""

    start: int
    about: Dict[str, Any]


def header(data: bytes) -> Header:
    """Read a header; refuse what is none, or what would have to be reordered."""
    if data[:6] != MAGIC:
        raise ValueError("this is no .npy file")
    try:
        wide = data[6] > 1
        (length,) = struct.unpack_from("<I" if wide else "<H", data, 8)
        start = (12 if wide else 10) + length
        about = ast.literal_eval(data[start - length : start].decode("utf-8"))
        is_reordered = about["fortran_order"]
    except (ValueError, LookupError, TypeError, SyntaxError, MemoryError, struct.error) as problem:
        raise ValueError("this .npy file's header is damaged: {}".format(problem)) from None
    if is_reordered:
        raise ValueError("this .npy file is in Fortran's order")
    return Header(start, about)


class Npy:
    """Arrays in files; each header is read each time its file is opened."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._size = int(dataset.manifest["largest"])
        self._open: Dict[int, Any] = {}

    def read(self, sample: int, into: memoryview) -> int:
        """Read one sample."""
        file, number = self._dataset.place(sample)
        if self._dataset.held[file] == 1:
            descriptor, start = self._opened(file)
            try:
                return read_whole(descriptor, into[: self._size], start, self._dataset.paths[file])
            finally:
                os.close(descriptor)
        if file not in self._open:
            self._open[file] = self._opened(file)
        descriptor, start = self._open[file]
        offset = start + number * self._size
        return read_whole(descriptor, into[: self._size], offset, self._dataset.paths[file])

    def _opened(self, file: int) -> Any:
        descriptor = os.open(self._dataset.paths[file], os.O_RDONLY)
        return descriptor, header(os.pread(descriptor, 4096, 0)).start


def open(dataset: Dataset) -> Npy:  # noqa: A001 - the contract's name
    """Open a set."""
    return Npy(dataset)
