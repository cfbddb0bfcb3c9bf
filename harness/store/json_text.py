"""Values as JSON text: dataclasses become objects, NaN becomes null.

No character in it can steer a terminal.
"""

from __future__ import annotations

import json
import math
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
