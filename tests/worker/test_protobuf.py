"""Protobuf's wire format: what is written is read, in any order, and nothing cut off."""

from __future__ import annotations

import pytest

from harness.worker.attribution import protobuf
from harness.worker.input import datum


def test_a_message_is_read_without_its_schema() -> None:
    # field 1: 300; field 2: "ab"; field 3: 8 bytes; field 1 again: 1
    message = memoryview(b"\x08\xac\x02\x12\x02ab\x19\x01\0\0\0\0\0\0\0\x08\x01")
    found = protobuf.by_number(message)
    assert (found[1], protobuf.text(found, 2), protobuf.integer(found, 3)) == ([300, 1], "ab", 1)
    assert (protobuf.text(found, 9), protobuf.integer(found, 9)) == ("", 0)


@pytest.mark.parametrize(
    "cut", [b"\x08", b"\x12\x05ab", b"\x0b", b"\x19\0", b"\x08" + b"\xff" * 11]
)
def test_a_message_that_is_cut_off_or_none_is_refused(cut: bytes) -> None:
    with pytest.raises(ValueError, match=r"cut off|unknown"):
        protobuf.by_number(memoryview(cut))


def test_a_datum_s_picture_is_found_wherever_it_stands() -> None:
    message = datum.head((1, 2, 150), 7) + bytes(300)
    assert protobuf.integer(protobuf.by_number(memoryview(message)), datum.LABEL) == 7
    assert bytes(datum.picture(memoryview(message))) == bytes(300)
    turned = protobuf.before_bytes(datum.DATA, 2) + b"ab" + protobuf.number_field(datum.LABEL, 300)
    assert bytes(datum.picture(memoryview(turned))) == b"ab"


def test_a_datum_without_bytes_of_a_picture_is_refused() -> None:
    with pytest.raises(ValueError, match="holds no bytes of a picture"):
        datum.picture(memoryview(protobuf.number_field(datum.DATA, 1)))
