"""Write values as TOML that a person can read: profiles, and studies that a program makes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_BARE = re.compile(r"^[A-Za-z0-9_-]+$")
_WIDTH = 100
_INLINE = ("sources",)
"""Tables whose members are written in a line each."""


def toml_text(data: Mapping[str, Any], comments: Sequence[str] = ()) -> str:
    """Write a document: plain values first, then its tables."""
    lines = [f"# {line}" for line in comments]
    lines += [f"{_key(k)} = {_value(v)}" for k, v in data.items() if not _is_table(k, v)]
    for name, value in data.items():
        if _is_table(name, value):
            lines += _table(_key(name), value, inline=name in _INLINE)
    return "\n".join(lines).strip() + "\n"


def _is_table(name: str, value: Any) -> bool:
    return isinstance(value, Mapping) or (name == "accelerators" and bool(value))


def _table(name: str, value: Any, *, inline: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        plain = {k: v for k, v in value.items() if inline or not isinstance(v, Mapping)}
        if plain or not value:
            yield ""
            yield f"[{name}]"
            yield from (f"{_key(k)} = {_value(v)}" for k, v in plain.items())
        for key, inner in value.items():
            if key not in plain:
                yield from _table(f"{name}.{_key(key)}", inner, inline=False)
    else:
        for one in value:
            yield ""
            yield f"[[{name}]]"
            yield from (f"{_key(k)} = {_value(v)}" for k, v in one.items())


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    parts = [_value(one) for one in value]
    line = f"[{', '.join(parts)}]"
    return line if len(line) < _WIDTH else "[\n" + "".join(f"  {part},\n" for part in parts) + "]"


def _key(name: str) -> str:
    return name if _BARE.match(name) else _quoted(name)


def _quoted(text: str) -> str:
    escaped = "".join(
        f"\\u{ord(c):04x}" if ord(c) < 32 or c == "\x7f" else "\\" + c if c in '"\\' else c
        for c in text
    )
    return f'"{escaped}"'
