"""Read and write protobuf's wire format: fields by number, with no schema and no library."""

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple, Union

Value = Union[int, memoryview]
Fields = Dict[int, List[Value]]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def fields(message: memoryview) -> Iterator[Tuple[int, Value]]:
    """Give a message's fields in order: numbers as they lie, texts and messages as views.

    Raises ValueError where the message is cut off, or is none.
    """
    at, end = 0, len(message)
    while at < end:
        told, at = varint(message, at)
        number, kind = told >> 3, told & 7
        if kind == _VARINT:
            value, at = varint(message, at)
            yield number, value
        elif kind == _BYTES:
            length, at = varint(message, at)
            yield number, _piece(message, at, length)
            at += length
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
            yield number, int.from_bytes(_piece(message, at, length), "little")
            at += length
        else:
            raise ValueError("field {} has the unknown wire type {}".format(number, kind))


def by_number(message: memoryview) -> Fields:
    """Give a message's fields, those of one number together."""
    found: Fields = {}
    for number, value in fields(message):
        found.setdefault(number, []).append(value)
    return found


def varint(message: memoryview, at: int) -> Tuple[int, int]:
    """Give the number that lies somewhere, and where what follows it begins."""
    value = shift = 0
    while True:
        if at >= len(message) or shift > 63:
            raise ValueError("a number is cut off")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def varint_bytes(value: int) -> bytes:
    """Write a number: seven bits a byte, the last one below 128."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number_field(number: int, value: int) -> bytes:
    """Write a field that is a number."""
    return varint_bytes(number << 3 | _VARINT) + varint_bytes(value)


def before_bytes(number: int, length: int) -> bytes:
    """Write what stands before the bytes of a field."""
    return varint_bytes(number << 3 | _BYTES) + varint_bytes(length)


def text(found: Fields, number: int) -> str:
    """Give a field as a text; empty where it is absent."""
    last = found.get(number, [b""])[-1]
    return "" if isinstance(last, int) else bytes(last).decode("utf-8", "replace")


def integer(found: Fields, number: int) -> int:
    """Give a field as a whole number; 0 where it is absent."""
    last = found.get(number, [0])[-1]
    return last if isinstance(last, int) else 0


def message(found: Fields, number: int) -> Fields:
    """Give a field as a message; an empty one where it is absent."""
    last = found.get(number, [0])[-1]
    return {} if isinstance(last, int) else by_number(last)


def messages(found: Fields, number: int) -> List[memoryview]:
    """Give the messages of a repeated field."""
    return [one for one in found.get(number, []) if not isinstance(one, int)]


def _piece(message: memoryview, at: int, length: int) -> memoryview:
    if at + length > len(message):
        raise ValueError("a field is cut off")
    return message[at : at + length]
