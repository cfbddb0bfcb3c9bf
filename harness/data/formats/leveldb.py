"""Write a LevelDB of Caffe's own messages, as its library leaves one that it has compacted.

LevelDB's ``table_format.md`` and ``impl.md`` describe the files. Each part of a set is a table:
blocks of sorted keys and their values, an index of the blocks, a footer. What the tables are stands
in MANIFEST, whose name stands in CURRENT. Blocks are as large as Caffe's ``db_leveldb.cpp`` asks
for, and not compressed, as the library leaves pictures that shrink by less than an eighth.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from harness.data.catalogue import Content
from harness.data.contents import Places, Sample
from harness.data.formats.datum import before
from harness.data.formats.tfrecord import crc32c
from harness.worker.attribution.protobuf import varint_bytes
from harness.worker.input.records import masked
from harness.worker.readers.leveldb import FOOTER, MAGIC, key_of

HOLDS = "table"
CLOSING = ("MANIFEST-000001", "CURRENT")
FIRST = 1
"""The number of the first table: 0 is no file's (its library asserts it, where it asserts)."""
_BLOCK = 65536
_RESTART = 16
"""Every so many keys one is written whole."""
_LOWEST = 6
"""The level of files that nothing is to be merged into."""
_NEWEST = (1 << 56) - 1
"""The number that no write reaches."""
_PUT = 1
_LOG_BLOCK, _LOG_HEAD = 32768, 7
_FULL, _FIRST, _MIDDLE, _LAST = range(1, 5)
_COMPARATOR, _LOG, _NEXT_FILE, _LAST_WRITE = range(1, 5)
_NEW_FILE, _LOG_BEFORE = 7, 9
"""What a MANIFEST's words begin with (version_edit.cc)."""


def suffix(content: Content) -> str:
    """Name files as LevelDB does."""
    del content
    return ".ldb"


def write(path: Path, samples: Sequence[Sample], first: int, content: Content) -> Places:
    """Write a table of the samples, in order; each is a plain stretch of it."""
    places, index = [], _Block(1)
    with path.open("wb") as file:

        def put(block: _Block) -> tuple[int, int]:
            data = block.ended()
            start = file.tell()
            kind = b"\0"  # not compressed
            file.write(data + kind + struct.pack("<I", masked(crc32c(data + kind))))
            return start, len(data)

        block = _Block(_RESTART)
        for number, one in enumerate(samples, first):
            start = before(content, one)
            at = block.put(_written(number), start + one.data)
            places.append((file.tell() + at + len(start), len(one.data)))
            if block.size >= _BLOCK and number < first + len(samples) - 1:
                index.put(_written(number), _numbers(*put(block)))
                block = _Block(_RESTART)
        index.put(_after(first + len(samples) - 1), _numbers(*put(block)))
        nothing = _numbers(*put(_Block(_RESTART)))
        handles = nothing + _numbers(*put(index))
        file.write(handles.ljust(FOOTER - 8, b"\0") + struct.pack("<Q", MAGIC))
    return places


class _Block:
    """Keys and values: of most keys only what differs from the one before."""

    def __init__(self, restart: int) -> None:
        self._every = restart
        self._data = bytearray()
        self._restarts = [0]
        self._count = 0
        self._last = b""

    @property
    def size(self) -> int:
        return len(self._data) + 4 * len(self._restarts) + 4

    def put(self, key: bytes, value: bytes) -> int:
        """Append a pair; say where in the block its value begins."""
        shared = 0
        if self._count == self._every:
            self._restarts.append(len(self._data))
            self._count = 0
        else:
            pairs = zip(key, self._last, strict=False)
            shared = next((at for at, (a, b) in enumerate(pairs) if a != b), len(self._last))
        self._count += 1
        self._last = key
        for number in (shared, len(key) - shared, len(value)):
            self._data += varint_bytes(number)
        self._data += key[shared:]
        at = len(self._data)
        self._data += value
        return at

    def ended(self) -> bytes:
        count = len(self._restarts)
        return bytes(self._data) + struct.pack(f"<{count + 1}I", *self._restarts, count)


def close(tables: Sequence[dict[str, Any]]) -> Iterator[bytes]:
    """Say which tables there are and what keys each holds, and where that is said."""
    firsts = [0, *accumulate(one["samples"] for one in tables)]
    edit = _numbers(_COMPARATOR) + _sized(b"leveldb.BytewiseComparator")
    log = FIRST + len(tables)
    edit += _numbers(_LOG, log) + _numbers(_LOG_BEFORE, 0)  # neither of which is there
    edit += _numbers(_NEXT_FILE, log + 1) + _numbers(_LAST_WRITE, firsts[-1])
    for number, one in enumerate(tables):
        edit += _numbers(_NEW_FILE, _LOWEST, FIRST + number, one["bytes"])
        edit += _sized(_written(firsts[number])) + _sized(_written(firsts[number + 1] - 1))
    yield _logged(edit)
    yield CLOSING[0].encode() + b"\n"


def _logged(record: bytes) -> bytes:
    """Write a record as LevelDB's logs have it: in pieces, none of which crosses a block."""
    written, at = bytearray(), 0
    while at < len(record) or not written:
        room = _LOG_BLOCK - len(written) % _LOG_BLOCK - _LOG_HEAD
        piece = record[at : at + room]
        is_last = at + len(piece) == len(record)
        kind = (_LAST if is_last else _MIDDLE) if at else (_FULL if is_last else _FIRST)
        told = bytes([kind]) + piece
        written += struct.pack("<IH", masked(crc32c(told)), len(piece)) + told
        at += len(piece)
    return bytes(written)


def _written(number: int) -> bytes:
    """Give a sample's key with what LevelDB appends: which write it was, and that it was a put."""
    return key_of(number) + struct.pack("<Q", (number + 1) << 8 | _PUT)


def _after(number: int) -> bytes:
    """Give the shortest key behind a sample's, as the last of an index is."""
    return bytes([key_of(number)[0] + 1]) + struct.pack("<Q", _NEWEST << 8 | _PUT)


def _numbers(*numbers: int) -> bytes:
    return b"".join(map(varint_bytes, numbers))


def _sized(text: bytes) -> bytes:
    return varint_bytes(len(text)) + text
