"""Write and read the message that Caffe keeps in its databases: a picture and its class.

It is ``Datum`` of BVLC's ``caffe.proto``: channels 1, height 2, width 3, data 4, label 5, and 7 of
pictures that are encoded, whose sizes then stay out. The data are written last, which protocol
buffers allow, so that they end the message.
"""

from __future__ import annotations

from typing import Sequence

from harness.worker.attribution.protobuf import before_bytes, fields, number_field

CHANNELS, HEIGHT, WIDTH, DATA, LABEL = range(1, 6)
ENCODED = 7


def head(shape: Sequence[int], label: int) -> bytes:
    """Give what stands before a picture's bytes, one for each channel of each point."""
    channels, height, width = shape
    message = b""
    for field, value in ((CHANNELS, channels), (HEIGHT, height), (WIDTH, width), (LABEL, label)):
        message += number_field(field, value)
    return message + before_bytes(DATA, channels * height * width)


def encoded_head(length: int, label: int) -> bytes:
    """Give what stands before the bytes of a picture's file, as ``convert_imageset --encoded``."""
    return number_field(LABEL, label) + number_field(ENCODED, 1) + before_bytes(DATA, length)


def picture(message: memoryview) -> memoryview:
    """Find a message's picture, in whatever order its fields stand."""
    for number, value in fields(message):
        if number == DATA and not isinstance(value, int):
            return value
    raise ValueError("a Datum holds no bytes of a picture; `bakeoff data check`")
