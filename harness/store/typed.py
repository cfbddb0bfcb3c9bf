"""Make dataclasses of JSON values, by their annotations; say which key is missing or wrong.

What a class does not know is left out, what it has a default for may be absent: so a reader of
today takes files of before and after. Whole numbers have at most 64 bits, others are finite.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from harness.errors import DamagedFile

Made = TypeVar("Made")
_Reader = Callable[[Any, str | None], Any]
"""Of a value and where it stands; None: that is not told, which takes half of the time."""
WRITTEN = {"written": True}
"""Of a field whose default is for those who make it: in a file it must stand."""
_WORDS = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    type(None): "null",
}


@contextmanager
def damage(path: Path) -> Iterator[None]:
    """Name the file whose content was found to be wrong."""
    try:
        yield
    except (ValueError, DamagedFile) as fault:
        raise DamagedFile(f"{path} is damaged: {str(fault).rstrip('.')}.") from None


def read(kind: type[Made], raw: Any, where: str = "") -> Made:
    """Make a value of a class or another type; raise ValueError with the key that is wrong."""
    form: Any = kind
    reader = _reader(form)
    try:
        made: Made = reader(raw, None)
    except ValueError:
        made = reader(raw, where)
    return made


@cache
def _reader(kind: Any) -> _Reader:
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return lambda raw, _: raw
    if origin in (Union, types.UnionType):
        return _any_of(inner)
    if origin is tuple:
        many = len(inner) == 2 and inner[1] is Ellipsis
        return _list_of(_reader(inner[0])) if many else _row_of([_reader(one) for one in inner])
    if origin is frozenset:
        members = _list_of(_reader(inner[0]))
        return lambda raw, where: frozenset(members(raw, where))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_of(_reader(inner[1]))
    if is_dataclass(kind):
        return _object_of(kind)
    if issubclass(kind, Enum):
        return _choice_of(kind)
    return _plain(kind)


def _plain(kind: Any) -> _Reader:
    def read_plain(raw: Any, where: str | None) -> Any:
        if type(raw) is kind:
            if kind is int and not -(1 << 63) <= raw < 1 << 63:
                raise ValueError(f"{where} is beyond 64 bits")
            if kind is not float or math.isfinite(raw):
                return raw
        elif kind is float and type(raw) is int and abs(raw) < 1 << 63:
            return raw
        raise ValueError(f"{where or 'the file'} is not {_WORDS[kind]}")

    return read_plain


def _any_of(kinds: tuple[Any, ...]) -> _Reader:
    readers = [_reader(one) for one in kinds]
    is_optional = type(None) in kinds

    def read_any(raw: Any, where: str | None) -> Any:
        if raw is None and is_optional:
            return None
        for one in readers[:-1]:
            try:
                return one(raw, where)
            except ValueError:
                continue
        try:
            return readers[-1](raw, where)
        except ValueError:
            if not _WORDS.keys() >= set(kinds):
                raise
            # unions are equal in any order, and so are kept in that of whichever came first
            *words, last = (word for kind, word in _WORDS.items() if kind in kinds)
            allowed = f"{', '.join(words)} or {last}"
            raise ValueError(f"{where or 'the file'} is not {allowed}") from None

    if is_optional and len(kinds) == 2:
        (only,) = (one for one, kind in zip(readers, kinds, strict=True) if kind is not type(None))
        return lambda raw, where: None if raw is None else only(raw, where)
    return read_any


def _list_of(one: _Reader) -> _Reader:
    def read_list(raw: Any, where: str | None) -> Any:
        if not isinstance(raw, list | tuple):
            raise ValueError(f"{where} is not a list")  # noqa: TRY004  each fault is a ValueError
        if where is None:
            return tuple([one(value, None) for value in raw])
        return tuple(one(value, f"{where}[{index}]") for index, value in enumerate(raw))

    return read_list


def _row_of(ones: list[_Reader]) -> _Reader:
    def read_row(raw: Any, where: str | None) -> Any:
        if not isinstance(raw, list | tuple) or len(raw) != len(ones):
            raise ValueError(f"{where} is not a list of {len(ones)}")
        return tuple(one(value, where) for one, value in zip(ones, raw, strict=True))

    return read_row


def _mapping_of(one: _Reader) -> _Reader:
    def read_mapping(raw: Any, where: str | None) -> Any:
        if not isinstance(raw, dict):
            raise ValueError(f"{where} is not an object")  # noqa: TRY004  as above
        if where is None:
            return {name: one(value, None) for name, value in raw.items()}
        return {name: one(value, f"{where}.{name}") for name, value in raw.items()}

    return read_mapping


def _choice_of(kind: type[Enum]) -> _Reader:
    known = {one.value: one for one in kind}

    def read_choice(raw: Any, where: str | None) -> Any:
        if not isinstance(raw, str) or raw not in known:
            raise ValueError(f"{where}: {raw!r:.80} is not known (known: {', '.join(known)})")
        return known[raw]

    return read_choice


def _object_of(kind: Any) -> _Reader:
    hints = get_type_hints(kind)
    members = [
        (one.name, one.metadata.get("key", one.name), _reader(hints[one.name]), _is_needed(one))
        for one in fields(kind)
    ]

    def read_object(raw: Any, where: str | None) -> Any:
        if not isinstance(raw, dict):
            raise ValueError(f"{where or 'the file'} is not an object")  # noqa: TRY004  as above
        given = {}
        for name, key, reader, is_needed in members:
            at = None if where is None else f"{where}.{key}" if where else key
            if key in raw:
                given[name] = reader(raw[key], at)
            elif is_needed:
                raise ValueError(f"{at} is missing")
        return kind(**given)

    return read_object


def _is_needed(one: Any) -> bool:
    has_default = one.default is not MISSING or one.default_factory is not MISSING
    return not has_default or "written" in one.metadata
