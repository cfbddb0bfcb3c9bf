"""Write and read Caffe's text format: messages of fields, some of them messages.

A message is a list of (name, value) pairs, in order; a field may stand several times. Values are
messages, numbers, flags, quoted texts and bare words (``Word``: enumerations such as MAX).
"""

from __future__ import annotations

import re
from typing import Any, Iterator, List, Tuple

Message = List[Tuple[str, Any]]
Token = Tuple[str, str]

_TOKEN = re.compile(r'\s+|#[^\n]*|"((?:[^"\\]|\\.)*)"|([{}:])|([^\s{}:"#]+)')


class Word(str):
    """A value that stands without quotes."""


def write(message: Message, depth: int = 0) -> str:
    """Write a message as text."""
    lines = []
    for name, value in message:
        if isinstance(value, list):
            inside = write(value, depth + 1)
            lines.append("{0}{1} {{\n{2}{0}}}\n".format("  " * depth, name, inside))
        else:
            lines.append("{}{}: {}\n".format("  " * depth, name, _written(value)))
    return "".join(lines)


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and not isinstance(value, Word):
        return '"{}"'.format(value.replace("\\", "\\\\").replace('"', '\\"'))
    return repr(value) if isinstance(value, float) else str(value)


def read(text: str) -> Message:
    """Read a message from text."""
    return _message(_tokens(text), is_inner=False)


def one(message: Message, name: str, otherwise: Any = None) -> Any:
    """Give a field's first value."""
    return next((value for key, value in message if key == name), otherwise)


def every(message: Message, name: str) -> List[Any]:
    """Give all values of a field."""
    return [value for key, value in message if key == name]


def _tokens(text: str) -> Iterator[Token]:
    for match in _TOKEN.finditer(text):
        quoted, sign, bare = match.groups()
        if sign:
            yield sign, sign
        elif bare is not None:
            yield "bare", bare
        elif quoted is not None:
            yield "value", re.sub(r"\\(.)", r"\1", quoted)


def _message(tokens: Iterator[Token], is_inner: bool) -> Message:
    message: Message = []
    for kind, name in tokens:
        if kind == "}" and is_inner:
            return message
        if kind != "bare":
            raise ValueError("a field's name was expected, not '{}'".format(name))
        kind, value = next(tokens, ("end", ""))
        if kind == ":":
            kind, value = next(tokens, ("end", ""))
        if kind == "{":
            message.append((name, _message(tokens, is_inner=True)))
        elif kind == "value":
            message.append((name, value))
        elif kind == "bare":
            message.append((name, _value(value)))
        else:
            raise ValueError("field {} has no value".format(name))
    if is_inner:
        raise ValueError("a message is not closed")
    return message


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if re.match(r"^[-+]?\d+$", text):
        return int(text)
    if re.match(r"^[-+]?[\d.]+(e[-+]?\d+)?$", text):
        return float(text)
    return Word(text)
