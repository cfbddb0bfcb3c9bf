"""Frame records as TFRecord files do, and write the one message that they hold.

A record is its length (64 bits), that length's masked checksum, the data, their masked checksum;
the checksum is CRC-32C (Castagnoli), turned right by 15 bits plus a constant (the TFRecord page of
TensorFlow's guide). The message is tf.train.Example with two features: ``id`` and ``x``.
"""

from __future__ import annotations

import struct
from typing import List

from harness.worker.attribution.protobuf import before_bytes, varint_bytes

_POLYNOMIAL = 0x82F63B78
_MASK = 0xA282EAD8
HEAD = 12
FOOT = 4


def _table() -> List[int]:
    made = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        made.append(value)
    return made


TABLE = _table()


def crc32c(data: bytes) -> int:
    """Compute CRC-32C, byte by byte: slow, and right."""
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def masked(checksum: int) -> int:
    """Mask a checksum, as data that hold checksums themselves need it."""
    return ((checksum >> 15 | checksum << 17) + _MASK) & 0xFFFFFFFF


def head(length: int) -> bytes:
    """Give what stands before a record's data."""
    packed = struct.pack("<Q", length)
    return packed + struct.pack("<I", masked(crc32c(packed)))


def data_length(first: bytes) -> int:
    """Read the length of a record's data from its head; refuse a damaged one."""
    length, checksum = struct.unpack("<QI", first)
    if masked(crc32c(first[:8])) != checksum:
        raise ValueError("a TFRecord's length is damaged; `bakeoff data check`")
    return int(length)


def before(number: int, length: int) -> bytes:
    """Give the part of a message that stands before a sample's bytes, which are its end."""
    identity = _feature(
        b"id", _field(3, _field(1, varint_bytes(number)))
    )  # Int64List.value, packed
    inner = before_bytes(1, length)  # BytesList.value
    value = before_bytes(1, len(inner) + length) + inner  # Feature.bytes_list
    entry = _field(1, b"x") + before_bytes(2, len(value) + length) + value
    features = identity + before_bytes(1, len(entry) + length) + entry
    return before_bytes(1, len(features) + length) + features


def _feature(name: bytes, value: bytes) -> bytes:
    return _field(1, _field(1, name) + _field(2, value))


def _field(number: int, data: bytes) -> bytes:
    return before_bytes(number, len(data)) + data
