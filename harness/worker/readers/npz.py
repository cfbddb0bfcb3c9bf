"""Read sets of .npz files: archives of one stored array, whose checksum is checked."""

from __future__ import annotations

import os
import struct
import zlib
from typing import Any, NamedTuple, Tuple

from harness.worker.input.dataset import Dataset
from harness.worker.readers.npy import header

_LOCAL = struct.Struct("<4s5H3L2H")
"""The header before an entry of a zip archive (APPNOTE.TXT 4.3.7)."""
_HEAD = 4096
"""Enough for both headers: numpy's is 128 bytes."""


class Entry(NamedTuple):
    """Where an archive's array lies: its header, the numbers behind it, and what they add up to."""

    start: int
    header: bytes
    size: int
    crc: int


class Npz:
    """Archives with an array each; a file of many samples is read once for its neighbours."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._size = int(dataset.manifest["largest"])
        self._last: Tuple[int, Any] = (-1, b"")

    def read(self, sample: int, into: memoryview) -> int:
        """Read the file that holds a sample; of many samples, copy this one out."""
        file, number = self._dataset.place(sample)
        if self._dataset.held[file] == 1:
            _read(self._dataset.paths[file], into[: self._size])
            return self._size
        held, data = self._last
        if held != file:
            data = bytearray(self._dataset.held[file] * self._size)
            _read(self._dataset.paths[file], memoryview(data))
            self._last = (file, data)
        into[: self._size] = memoryview(data)[number * self._size : (number + 1) * self._size]
        return self._size


def _read(path: str, into: memoryview) -> None:
    """Read an archive's array, and check it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        found = entry(os.pread(descriptor, _HEAD, 0), path)
        at = found.start + len(found.header)
        done = 0
        while done < len(into):
            more = os.preadv(descriptor, [into[done:]], at + done)
            if not more:
                raise EOFError("{} ends before its array does; `bakeoff data check`".format(path))
            done += more
    finally:
        os.close(descriptor)
    whole = zlib.crc32(into, zlib.crc32(found.header)) == found.crc
    if not whole or len(found.header) + len(into) != found.size:
        raise ValueError("{} is damaged; `bakeoff data check`".format(path))


def entry(head: bytes, path: str) -> Entry:
    """Read what stands before the array."""
    if len(head) < _LOCAL.size:
        raise ValueError("{} ends before its array does; `bakeoff data check`".format(path))
    _, _, _, method, _, _, crc, packed, size, name, extra = _LOCAL.unpack_from(head)
    if method or not packed:
        raise ValueError("{} is compressed or was written as a stream; make it anew".format(path))
    start = _LOCAL.size + name + extra
    return Entry(start, head[start : start + header(head[start:]).start], size, crc)


def open(dataset: Dataset) -> Npz:  # noqa: A001 - the contract's name
    """Open a set."""
    return Npz(dataset)
