"""Shorten the absolute paths in what leaves a machine: where it keeps things is its own business.

Applied to what travels: a page, ``results.json``, every export, a comparison. The run directory
keeps them whole.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

from harness.worker.redaction.redact import NAMES_A_PLACE

_ABSOLUTE = re.compile(
    # the end of `file://` and of `-I` begin one too; `images/s`, `../x` and `https://` do not
    r"(?:(?<![\w/.~…])|(?<=://)|(?<=(?<!\w)-[A-Z]))((?:/[^\s/,:;'\"]+)+)"
)
_KEPT = 2
"""So many names are said of a path, the last; never its first."""
_OF_EVERY_MACHINE = frozenset({"proc", "sys", "dev"})
_PLAIN = frozenset({int, float, bool, type(None)})
_OF_USERS = frozenset({"home", "Users"})


def without_place(text: str) -> str:
    """Keep of absolute paths their last two names at most; of a home what is said within it."""
    return _ABSOLUTE.sub(lambda found: _last_names(found[1]), text) if "/" in text else text


def without_places(value: Any) -> Any:
    """Shorten the absolute paths in a value as JSON or a dataclass holds it.

    A dataclass's ``NAMES_A_PLACE`` fields are left: by them others find files.
    """
    if isinstance(value, str):
        return without_place(value)
    if isinstance(value, Mapping):
        shown = {name: without_places(one) for name, one in value.items()}
        return shown if _differ(shown.values(), value.values()) else value
    if isinstance(value, list | tuple):
        if _PLAIN.issuperset(map(type, value)):
            return value
        some = [without_places(one) for one in value]
        return type(value)(some) if _differ(some, value) else value
    if is_dataclass(value) and not isinstance(value, type):
        changed = {}
        for name in _shown_fields(type(value)):
            held = getattr(value, name)
            shown = without_places(held)
            if shown is not held:
                changed[name] = shown
        return replace(value, **changed) if changed else value
    return value


def _last_names(path: str) -> str:
    names = path.strip("/").split("/")
    own = _home()
    if (len(names) == 1 and names != own) or names[0] in _OF_EVERY_MACHINE:
        return path
    start = "…"
    if own and names[: len(own)] == own:
        start, names = "~", names[len(own) :]
    elif names[0] in _OF_USERS:
        start, names = "~", names[2:]
    else:
        names = names[1:]
    if len(names) > _KEPT:
        start, names = "…", names[-_KEPT:]
    return "/".join((start, *names))


def _home() -> list[str]:
    """Name the folders that lead to the home of whoever asks; none where nobody knows it."""
    own = os.path.expanduser("~")  # noqa: PTH111  a user without a name has none, and it says so
    return [name for name in own.split("/") if name] if os.path.isabs(own) else []  # noqa: PTH117


@cache
def _shown_fields(kind: type) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind) if NAMES_A_PLACE not in one.metadata)


def _differ(some: Any, others: Any) -> bool:
    return any(one is not other for one, other in zip(some, others, strict=True))
