"""Write and read the message that Caffe keeps in an LMDB: a picture and its class.

It is ``Datum`` of BVLC's ``caffe.proto``: channels 1, height 2, width 3, data 4, label 5. The label
is written before the data, which protocol buffers allow, so that the data end the message.
"""

from __future__ import annotations

from typing import Dict, Sequence, Tuple, Union

from harness.worker.input.records import varint

CHANNELS, HEIGHT, WIDTH, DATA, LABEL = range(1, 6)


def head(shape: Sequence[int], label: int) -> bytes:
    """Give what stands before a picture's bytes, one for each channel of each point."""
    channels, height, width = shape
    message = b""
    for field, value in ((CHANNELS, channels), (HEIGHT, height), (WIDTH, width), (LABEL, label)):
        message += varint(field << 3) + varint(value)
    return message + varint(DATA << 3 | 2) + varint(channels * height * width)


def fields(message: memoryview) -> Dict[int, Union[int, memoryview]]:
    """Read a message's numbers and bytes by their fields, in whatever order they stand."""
    found: Dict[int, Union[int, memoryview]] = {}
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        if key & 7 not in (0, 2):
            raise ValueError("a Datum of bytes has numbers and bytes only")
        value, at = _varint(message, at)
        if key & 7 == 2:
            found[key >> 3] = message[at : at + value]
            at += value
        else:
            found[key >> 3] = value
    return found


def _varint(message: memoryview, at: int) -> Tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
