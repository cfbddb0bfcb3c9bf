"""Hide secrets in variables, texts and values that are written to a run or shown on a page.

Applied where a run is written, and again where one is read to be shown. A variable is hidden when
in doubt: its harmless value costs nothing. In a text only what is assigned to a telling name, or
has the shape of a secret, becomes "(redacted)"; the words around it stay.
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, Iterable, List, Mapping, Sequence, Tuple

from harness.worker.redaction.names import (
    MOST_KNOWN,
    is_announced,
    is_random,
    is_secret_field,
    is_secret_variable,
    secret_members,
)
from harness.worker.redaction.places import (
    HIDDEN,
    has_any,
    is_client,
    may_hold_placed,
    without_placed,
)
from harness.worker.redaction.shapes import (
    BLOCKS,
    holds_shape,
    may_hold_shape,
    without_shapes,
)
from harness.worker.redaction.writings import decoded, without_colours
from harness.worker.redaction.yaml_blocks import may_go_on

_WORD = re.compile(r"[A-Za-z0-9+=_-]{24,}")
_SHORTEST = 8
"""A shorter value of a secret variable may be an honest word elsewhere."""
_LONGEST = 2000
_SHORT = 200
_MOST_OPEN = 50
_PLAIN = frozenset({int, float, bool, type(None)})
NAMES_A_PLACE = "names a place"
"""In the metadata of a dataclass's field: others find files and tables by it."""


def redact(name: str, value: str) -> str:
    """Hide a variable's value, or the part of it that looks like a secret."""
    if not value:
        return value
    if is_secret_variable(name):
        return HIDDEN
    if holds_shape(value) or any(map(is_random, _WORD.findall(value))):
        return HIDDEN
    value = without_placed(_as_read(value), is_secret_variable)
    return value if len(value) <= _LONGEST else f"{value[:_LONGEST]} … ({len(value)} characters)"


def redact_text(text: str, known: Sequence[str] = ()) -> str:
    """Hide the secrets in a text, and whatever ``known`` ones it repeats."""
    for secret in known:
        text = text.replace(secret, HIDDEN)
    text = _as_read(text)
    if len(text) <= _SHORT or "\n" not in text or has_any(BLOCKS, text):
        return _without_secrets(text)
    shown: List[str] = []
    run: List[str] = []
    for line in text.split("\n"):
        may_hold_one = _may_hold_secret(line)
        if run or may_hold_one:
            run.append(line)
        else:
            shown.append(line)
        # A name's value may stand in the next line, or in further ones until a bracket closes.
        if run and not may_hold_one and line.strip() and not _is_open(run):
            shown.append(_without_secrets("\n".join(run)))
            run = []
    return "\n".join([*shown, _without_secrets("\n".join(run))] if run else shown)


def _as_read(text: str) -> str:
    """Undo what a line's colours and encodings do where they could hide a secret from us."""
    if "\x1b" not in text and decoded(text) == text:
        return text
    return "\n".join(map(_line_as_read, text.split("\n")))


def _line_as_read(line: str) -> str:
    plain = without_colours(line)
    line = plain if _may_hold_secret(plain) else line
    plain = decoded(line)
    return plain if _may_hold_secret(plain) and _without_secrets(plain) != plain else line


def _is_open(run: Sequence[str]) -> bool:
    text = "".join(run[-_MOST_OPEN:])
    if text.count("[") + text.count("{") > text.count("]") + text.count("}"):
        return True
    return may_go_on(run[-_MOST_OPEN:])


def _may_hold_secret(line: str) -> bool:
    return may_hold_placed(line) or may_hold_shape(line)


def _without_secrets(text: str) -> str:
    return without_placed(without_shapes(text, HIDDEN), is_secret_field)


def redact_command(argv: Iterable[str]) -> List[str]:
    """Hide the secrets in a command's words, also one that follows its option."""
    hidden: List[str] = []
    takes_secret = is_after_client = False
    for word in argv:
        is_option = word.startswith("-")
        if is_after_client and re.match("-p[^-]", word):
            word = f"-p{HIDDEN}"
        hidden.append(HIDDEN if takes_secret and not is_option else redact("", word))
        is_after_client = is_after_client or is_client(word)
        bare = is_option and "=" not in word
        takes_secret = bare and (
            word == "-p" or is_secret_variable(word.strip("-").replace("-", "_"))
        )
    return hidden


def redact_values(value: Any, name: str = "") -> Any:
    """Hide the secrets in a value as JSON or a dataclass holds it.

    Those of an ``environment`` are variables'. A dataclass's ``NAMES_A_PLACE`` fields are left.
    """
    kind = type(value)
    if kind is str:
        return HIDDEN if value and name and is_secret_field(name) else _shown(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, Mapping):
        of_variables = name == "environment"
        within = name if name and is_secret_field(name) else ""
        members = secret_members(value)
        names = (value.get("name"), value.get("key") if "value" in value else None)
        if any(type(one) is str and is_secret_field(one) for one in names):
            members = ("value",)
        shown = {
            key: redact(key, one)
            if of_variables and type(one) is str
            else HIDDEN
            if key in members or (type(one) is int and is_secret_field(within or str(key)))
            else redact_values(one, within or str(key))
            for key, one in value.items()
        }
        is_same = all(one is other for one, other in zip(shown.values(), value.values()))
        return _with_shown_names(value if is_same else shown)
    if kind is list or kind is tuple:
        if _PLAIN.issuperset(map(type, value)):
            return value
        some = [
            HIDDEN
            if type(one) is str and one and is_announced(before, one, len(value))
            else redact_values(one, name)
            for before, one in zip((None, *value), value)
        ]
        is_same = all(one is other for one, other in zip(some, value))
        return value if is_same else kind(some)
    if is_dataclass(kind):
        changed = {}
        for member in _shown_members(kind):
            held = getattr(value, member)
            if type(held) not in _PLAIN:
                shown = redact_values(held, member)
                if shown is not held:
                    changed[member] = shown
        return replace(value, **changed) if changed else value
    return value


def _with_shown_names(value: Mapping[Any, Any]) -> Mapping[Any, Any]:
    shown = {_shown(key) if type(key) is str else key: one for key, one in value.items()}
    return value if shown.keys() == value.keys() else shown


@lru_cache(maxsize=None)
def _shown_members(kind: type) -> Tuple[str, ...]:
    return tuple(one.name for one in fields(kind) if NAMES_A_PLACE not in one.metadata)


@lru_cache(maxsize=MOST_KNOWN)
def _shown_once(text: str) -> str:
    return redact_text(text)


def _shown(text: str) -> str:
    """Hide the secrets in a text; most short ones occur often."""
    return _shown_once(text) if len(text) <= _SHORT else redact_text(text)


def secrets_of(environ: Mapping[str, str]) -> Tuple[str, ...]:
    """Give the values that variables of an environment hide, the longest first."""
    values = {
        value
        for name, value in environ.items()
        if is_secret_variable(name) and len(value) >= _SHORTEST and "/" not in value[:1]
    }
    return tuple(sorted(values, key=len, reverse=True))
