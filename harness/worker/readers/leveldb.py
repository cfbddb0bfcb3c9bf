"""Read a LevelDB of Caffe's messages: its tables' footer, index and blocks, as its library does.

The library itself wants to write where it reads, and lets one process in; the ranks of a trial
share a set that may be read-only. What it does for a key is done here: the index of the key's table
is searched, kept with its file as long as that is among the last hundred used (Caffe asks for so
many), and one block is read, whose checksum the library leaves alone unless told otherwise.
"""

from __future__ import annotations

import os
import struct
import threading
from bisect import bisect_left
from collections import OrderedDict
from typing import Iterator, List, Tuple

from harness.worker.attribution.protobuf import varint
from harness.worker.input.dataset import Dataset
from harness.worker.input.datum import picture

FOOTER = 48
MAGIC = 0xDB4775248B80FB57
_TAG = 8
"""Bytes behind each key: which write it was."""
_TRAILER = 5
"""Behind each block: how it is compressed, and its checksum."""
_MOST_OPEN = 100


def key_of(sample: int) -> bytes:
    """Give the key of a sample: its number, as in an LMDB."""
    return b"%09d" % sample


class Table:
    """One file that stays open, with its index."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDONLY)
        self._size = os.fstat(self._file).st_size
        footer = os.pread(self._file, FOOTER, max(0, self._size - FOOTER))
        if len(footer) < FOOTER or struct.unpack_from("<Q", footer, FOOTER - 8) != (MAGIC,):
            raise self._damaged("is no table of a LevelDB")
        place = memoryview(footer)
        at = 0
        for _ in range(2):  # a block of filters, which may be empty
            _, at = varint(place, at)
        offset, at = varint(place, at)
        size, _ = varint(place, at)
        self._keys: List[bytes] = []
        self._blocks: List[Tuple[int, int]] = []
        for key, handle in entries(self._block(offset, size)):
            start, at = varint(handle, 0)
            self._keys.append(key)
            self._blocks.append((start, varint(handle, at)[0]))

    def __del__(self) -> None:
        """Close the file once nobody reads from it any more."""
        if hasattr(self, "_file"):
            os.close(self._file)

    def value(self, key: bytes) -> memoryview:
        """Find what is kept under a key."""
        number = bisect_left(self._keys, key)  # a block's key in the index is none before its last
        if number < len(self._keys):
            for found, value in entries(self._block(*self._blocks[number])):
                if found == key:
                    return value
        raise self._damaged("holds no key {!r}".format(key.decode()))

    def _block(self, offset: int, size: int) -> memoryview:
        if offset + size + _TRAILER > self._size:
            raise self._damaged("ends before one of its blocks")
        data = memoryview(os.pread(self._file, size + 1, offset))
        if len(data) < size + 1:
            raise self._damaged("holds a block that is cut short")
        if data[size]:
            raise self._damaged("holds a compressed block, which nothing here wrote")
        return data[:size]

    def _damaged(self, why: str) -> ValueError:
        return ValueError("{} {}; `bakeoff data check`".format(self._path, why))


def entries(block: memoryview) -> Iterator[Tuple[bytes, memoryview]]:
    """Give a block's pairs in order, the keys as they were put."""
    if len(block) < 4:
        raise ValueError("a block of a LevelDB is cut short")
    (restarts,) = struct.unpack_from("<I", block, len(block) - 4)
    end, at, key = len(block) - 4 * (restarts + 1), 0, b""
    if end < 0:
        raise ValueError("a block of a LevelDB has no end")
    while at < end:
        shared, at = varint(block, at)
        own, at = varint(block, at)
        length, at = varint(block, at)
        if shared > len(key) or shared + own < _TAG or at + own + length > end:
            raise ValueError("an entry of a LevelDB is damaged")
        key = key[:shared] + bytes(block[at : at + own])
        at += own
        yield key[:-_TAG], block[at : at + length]
        at += length


class LevelDb:
    """The tables used last, for all threads."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._open: "OrderedDict[int, Table]" = OrderedDict()
        self._lock = threading.Lock()

    def read(self, sample: int, into: memoryview) -> int:
        """Copy what a sample's message holds as data."""
        data = picture(self._table(sample).value(key_of(sample)))
        into[: len(data)] = data
        return len(data)

    def _table(self, sample: int) -> Table:
        file, _ = self._dataset.place(sample)
        with self._lock:
            if file in self._open:
                self._open.move_to_end(file)
                return self._open[file]
        table = Table(self._dataset.paths[file])
        with self._lock:
            self._open[file] = table
            if len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)
        return table


open = LevelDb  # noqa: A001 - the contract's name
