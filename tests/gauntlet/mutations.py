"""Damage valid input: bytes, words, lines and JSON values, as chance has it."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Sequence
from typing import Any

_WORDS = (
    *("", "0", "-1", "-0", "1e999", "nan", "inf", "1.58.4", "+5", "0x10", "1_000", "²", "٣", "½"),
    *("9223372036854775808", "18446744073709551616", "1" * 400, "9" * 5000, "1e-400", "null"),
    *("true", "\x00", "\x1b[2J\x1b]0;x\x07", "\u2028", "\u202e", "\r", "\t", "../../x", "/etc/x"),
    *("${TRIALS}", "{0}", "{x}", "%s", "%n", "[[[[[[", "]", "{", "}", "'", '"', '"""', "\\", "#"),
    *("[1-99999999]", "a" * 3000, "=", "==", ",", ";", ":", "::", "-", "<!ENTITY", "&lol;", "ﬁ"),
)
_BYTES = (b"\xff", b"\x00" * 9, b"\xed\xa0\x80", b"\xff\xff\xff\xff", b"\x7f" * 8, b"\r\n", b"\n\n")
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 2**64, 10**400, 1.5, -0.0, 1e308),
    *("", "x", "..", "../../../tmp/x", "/tmp/x", "\ud800", "\x1b[31m", "<script>x</script>", "٣"),
    *([], {}, [None], [[]], {"": {}}, {"x": 1}, [1, 2, 3], ["a"], float("nan"), float("inf")),
)
_WORD = re.compile(rb"[A-Za-z_]+|[0-9]+(?:\.[0-9]+)?|[^\sA-Za-z0-9_]")
_DEEP = 50_000


def damaged(seeds: Sequence[bytes], chance: random.Random, *, is_json: bool) -> bytes:
    """Give one of some valid inputs with one to four things wrong."""
    data = chance.choice(seeds)
    if is_json and chance.random() < 0.7:
        return _wrong_values(data, chance)
    for _ in range(chance.choice((1, 1, 1, 2, 2, 4))):
        data = chance.choice(_WAYS)(data, chance, seeds)
    return data


def _wrong_values(data: bytes, chance: random.Random) -> bytes:
    """Replace values of a JSON text, or of one of its lines, by others; drop and rename keys."""
    lines = data.split(b"\n") if b"}\n{" in data else [data]
    number = chance.randrange(len(lines))
    try:
        holder = [json.loads(lines[number])]
    except ValueError:
        return _words(data, chance, ())
    for _ in range(chance.choice((1, 1, 2, 3))):
        _change(holder, chance)
    if chance.random() < 0.01:
        return b"[" * _DEEP
    lines[number] = json.dumps(holder[0]).encode()
    return b"\n".join(lines)


def _change(holder: Any, chance: random.Random) -> None:
    """Walk down from the top as chance has it, and change what is there."""
    here, key = holder, 0
    while isinstance(here[key], dict | list) and here[key] and chance.random() < 0.85:
        here = here[key]
        key = chance.choice(list(here)) if isinstance(here, dict) else chance.randrange(len(here))
    how = chance.random()
    if how < 0.15 and here is not holder:
        del here[key]
    elif how < 0.25 and isinstance(here, dict):
        here[chance.choice(("", "..", "x", "\x1b", "__class__"))] = copy.deepcopy(here[key])
    else:
        here[key] = copy.deepcopy(chance.choice(_VALUES))
        if chance.random() < 0.02:
            here[key] = "y" * 100_000


def _flip(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    if not data:
        return b"\x01"
    at = chance.randrange(len(data))
    return data[:at] + bytes((data[at] ^ 1 << chance.randrange(8),)) + data[at + 1 :]


def _insert(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    at = chance.randint(0, len(data))
    return data[:at] + chance.choice(_BYTES) + data[at:]


def _cut(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    return data[: chance.randint(0, len(data))]


def _drop(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    at = chance.randint(0, len(data))
    return data[:at] + data[at + chance.choice((1, 1, 2, 8, 100)) :]


def _repeat(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    at = chance.randint(0, len(data))
    piece = data[at : at + chance.choice((1, 4, 20, 200))]
    return data[:at] + piece * chance.choice((2, 3, 50)) + data[at:]


def _splice(data: bytes, chance: random.Random, seeds: Sequence[bytes]) -> bytes:
    other = chance.choice(seeds) if seeds else data
    return data[: chance.randint(0, len(data))] + other[chance.randint(0, len(other)) :]


def _words(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    places = [match.span() for match in _WORD.finditer(data[:20_000])]
    if not places:
        return chance.choice(_WORDS).encode()
    begin, end = chance.choice(places)
    return data[:begin] + chance.choice(_WORDS).encode() + data[end:]


def _swap(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    lines = data.split(b"\n")
    first, second = chance.randrange(len(lines)), chance.randrange(len(lines))
    if chance.random() < 0.5:
        lines[first], lines[second] = lines[second], lines[first]
    else:
        lines[first] = lines[second] + b" " + lines[first]
    return b"\n".join(lines)


_WAYS = (_flip, _insert, _cut, _drop, _repeat, _splice, _words, _words, _words, _swap)
