"""Values as JSON text: dataclasses become objects, NaN becomes null.

No character in what is written can steer a terminal. What is read may be anybody's: it holds only
what a file, a page and a database can hold.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

_C1, _DIRECTIONS = (
    range(0x7F, 0xA0),
    (0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)),
)
_CONTROLS = {code: f"\\u{code:04x}" for code in (*_C1, *_DIRECTIONS, *range(0xD800, 0xE000))}
"""JSON escapes what stands below 0x20 by itself; terminals obey these as well, or turn text, and
halves of letters (of paths that are no Unicode) cannot be written."""

_HALF_LETTER = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")
_LONG_NUMBER = re.compile(rb"\b[0-9]{20}")
_LOWEST, _HIGHEST = -(2**63), 2**64 - 1  # inodes have no sign


def parse(text: bytes) -> Any:
    """Read JSON, of finite numbers and whole ones of at most 64 bits, or raise ValueError."""
    is_long = _LONG_NUMBER.search(text) is not None
    decoder = _OF_LONG_NUMBERS if is_long else _OF_SHORT_NUMBERS
    try:
        value = decoder.decode(text.decode(json.detect_encoding(text), "surrogatepass"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    may_have_halves = b"\\u" in text or b"\xed" in text
    if may_have_halves and _HALF_LETTER.search(text) is not None:
        return _with_whole_letters(value)
    return value


def parse_line(line: bytes) -> Any:
    """Read one line of JSON; raise ValueError with where the line goes wrong."""
    try:
        return json.loads(line)
    except json.JSONDecodeError as fault:
        is_cut = line.lstrip().startswith(b"{") and not line.rstrip().endswith(b"}")
        what = "it is cut short" if is_cut else f"it is no JSON from character {fault.colno} on"
        raise ValueError(what) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def json_text(value: object, *, indent: int | None = None) -> str:
    """Write a value as JSON, with its letters as they are."""
    try:
        text = _written(value, indent)
    except ValueError:  # it holds what is not a number, which JSON cannot write: it is unknown
        text = _written(_with_numbers_only(value), indent)
    return text.translate(_CONTROLS)


def plain(value: Any) -> Any:
    """Convert one value of a type that JSON lacks."""
    if is_dataclass(value):
        return {one.name: getattr(value, one.name) for one in fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set):
        return sorted(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} is no value that JSON can hold")


def _written(value: object, indent: int | None) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False, default=plain)


def _with_numbers_only(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, list | tuple):
        return [_with_numbers_only(one) for one in value]
    if isinstance(value, dict):
        return {name: _with_numbers_only(one) for name, one in value.items()}
    return _with_numbers_only(plain(value))


def _whole_number(text: str) -> int:
    number = int(text)
    if not _LOWEST <= number <= _HIGHEST:
        raise ValueError(f"{text[:24]}{'…' if text[24:] else ''} is beyond 64 bits")
    return number


def _with_whole_letters(value: Any) -> Any:
    """Replace surrogates without their other half: no file, page or database could hold them."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_with_whole_letters(one) for one in value]
    if isinstance(value, dict):
        return {_with_whole_letters(key): _with_whole_letters(one) for key, one in value.items()}
    return value


def _not_finite(text: str) -> None:
    raise ValueError(f"{text} is no number")


# Made once: `json.loads` would make one for each small file, which takes longer than to read it.
_OF_SHORT_NUMBERS = json.JSONDecoder(parse_constant=_not_finite)
_OF_LONG_NUMBERS = json.JSONDecoder(parse_constant=_not_finite, parse_int=_whole_number)
