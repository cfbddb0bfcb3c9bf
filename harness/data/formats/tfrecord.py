"""Write TFRecord shards, without TensorFlow.

Checksums of large data are computed many bytes at once: CRC-32C is linear, so the checksums of
equal stretches are computed side by side with numpy and then joined.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.data.catalogue import Content
from harness.data.contents import Places, Sample
from harness.worker.input import records

HOLDS = "shard"
_LANES = 512
_Words = npt.NDArray[np.uint32]


def suffix(content: Content) -> str:
    """Name files as people do."""
    del content
    return ".tfrecord"


def write(path: Path, samples: Sequence[Sample], first: int, content: Content) -> Places:
    """Write one record after the other."""
    del content
    places, at = [], 0
    with path.open("wb") as file:
        for number, one in enumerate(samples, first):
            before = records.before(number, len(one.data))
            data = before + one.data
            checksum = records.masked(crc32c(data))
            file.write(records.head(len(data)) + data + struct.pack("<I", checksum))
            places.append((at + records.HEAD + len(before), len(one.data)))
            at += records.HEAD + len(data) + records.FOOT
    return places


def crc32c(data: bytes) -> int:
    """Compute CRC-32C in lanes."""
    lane = len(data) // _LANES
    if lane < _LANES:
        return records.crc32c(data)
    table = np.array(records.TABLE, dtype=np.uint32)
    lanes = np.frombuffer(data, np.uint8, lane * _LANES).reshape(_LANES, lane)
    values: _Words = np.zeros(_LANES, np.uint32)
    values[0] = 0xFFFFFFFF
    for column in np.ascontiguousarray(lanes.T):
        values = (values >> np.uint32(8)) ^ table[(values ^ column) & np.uint32(0xFF)]
    shifted = _zeros(lane)
    joined = 0
    for value in values:
        joined = _through(shifted, joined) ^ int(value)
    for byte in data[lane * _LANES :]:
        joined = joined >> 8 ^ records.TABLE[(joined ^ byte) & 0xFF]
    return joined ^ 0xFFFFFFFF


def _through(operator: Sequence[int], value: int) -> int:
    result, bit = 0, 0
    while value:
        if value & 1:
            result ^= operator[bit]
        value >>= 1
        bit += 1
    return result


@cache
def _zeros(count: int) -> tuple[int, ...]:
    """Give what so many zero bytes do to a checksum, as a matrix over bits, by squaring."""
    one = tuple((1 << bit) >> 8 ^ records.TABLE[(1 << bit) & 0xFF] for bit in range(32))
    result = tuple(1 << bit for bit in range(32))
    while count:
        if count & 1:
            result = tuple(_through(one, column) for column in result)
        one = tuple(_through(one, column) for column in one)
        count >>= 1
    return result
