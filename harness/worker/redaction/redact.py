"""Hide secrets in variables, texts and values that are written to a run or shown on a page.

Applied where a run is written, and again where one is read to be shown. A variable is hidden when
in doubt: its harmless value costs nothing. In a text only what is assigned to a telling name, or
has the shape of a secret, becomes "(redacted)"; the words around it stay.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, Iterable, List, Mapping, Sequence, Tuple

from harness.worker.redaction.shapes import (
    BEGINS,
    OF_NAMES,
    OF_SHAPES,
    SHAPE,
    is_random,
    is_secret_field,
    is_secret_variable,
)

HIDDEN = "(redacted)"

_IN_ADDRESS = re.compile(r"""(?<=://)[^/\s"'<>]+(?=@)""")
# A name is looked for by itself, from where it begins, and its value only if the name is telling:
# whatever looks at a long text from each of its letters takes hours.
_ASSIGNED = (
    re.compile(r"""(?<![\w.-])([\w.-]+)(\\*["']?\s*(?:=>|:=|[=:])\s*)"""),
    re.compile(
        r"""\(redacted\)|(?P<quote>\\+["'])(?:.*?)(?P=quote)|"(?:[^"\\\n]|\\.)*"|"""
        r"""'(?:[^'\\\n]|\\.)*'|(?!\\*["'])[^\s&;,"'\\)}\]]+|\\*["'][^\s"']+"""
    ),
)
_OPTION = (
    re.compile(r"""(?:(?<![\w-])|(?<=\\[nrt]))--?([\w-]+)\s+"""),
    re.compile(r""""[^"\n]*"|'[^'\n]*'|[^\s"'-]\S*"""),
)
_HEADER = re.compile(
    r"""((?:Proxy-)?Authorization|(?:Set-)?Cookie|X-[\w-]*(?:Key|Token|Auth)[\w-]*)"""
    r"""(\\*["']?\s*[:=]\s*\\*["']?)([^\r\n"'\\]+)""",
    re.IGNORECASE,
)
_OF_HEADERS = ("authorization", "cookie", "x-")
_BASIC = re.compile(rf"{BEGINS}(Basic )([A-Za-z0-9+/_-]{{6,}}={{0,2}})")
_LOGIN = re.compile(
    rf"""({BEGINS}login\s+\S+\s+(?:account\s+\S+\s+)?password\s+)(\S+)"""
    rf"""|({BEGINS}(?:sshpass|mysql|mysqldump|mariadb|smbclient|ldapsearch|redis-cli)\b"""
    r"""[^\n]{0,500}?\s-[pwa]\s*)([^\s-]\S*)"""
    rf"""|({BEGINS}curl\b[^\n]{{0,500}}?\s(?:-u|--user)[\s=]+)(\S+)"""
)
_OF_LOGINS = (
    *("login", "sshpass", "mysql", "mariadb", "smbclient", "ldapsearch", "redis-cli", "curl"),
)
_OF_ALL = (*OF_NAMES, *_OF_HEADERS, *_OF_LOGINS, "basic ")
_WORD = re.compile(r"[A-Za-z0-9+=_-]{24,}")
_SHORTEST = 8
"""A shorter value of a secret variable may be an honest word elsewhere."""
_LONGEST = 2000
_SHORT, _MOST_KNOWN = 200, 1 << 14
_PLAIN = frozenset({int, float, bool, type(None)})
NAMES_A_PLACE = "names a place"
"""In the metadata of a dataclass's field: others find files and tables by it."""


def redact(name: str, value: str) -> str:
    """Hide a variable's value, or the part of it that looks like a secret."""
    if not value:
        return value
    if is_secret_variable(name):
        return HIDDEN
    if SHAPE.search(value) or any(map(is_random, _WORD.findall(value))):
        return HIDDEN
    value = _without_assigned(value, is_secret_variable)
    return value if len(value) <= _LONGEST else f"{value[:_LONGEST]} … ({len(value)} characters)"


def redact_text(text: str, known: Sequence[str] = ()) -> str:
    """Hide the secrets in a text, and whatever ``known`` ones it repeats."""
    for secret in known:
        text = text.replace(secret, HIDDEN)
    if len(text) <= _SHORT or "\n" not in text or "-----BEGIN" in text:
        return _without_secrets(text)
    shown: List[str] = []
    run: List[str] = []
    for line in text.split("\n"):
        may_hold_one = _may_hold_secret(line)
        if run or may_hold_one:
            run.append(line)
        else:
            shown.append(line)
        if run and not may_hold_one and line.strip():  # a name's value may stand in the next line
            shown.append(_without_secrets("\n".join(run)))
            run = []
    return "\n".join([*shown, _without_secrets("\n".join(run))] if run else shown)


def _may_hold_secret(line: str) -> bool:
    return "://" in line or _has_any(OF_SHAPES, line) or _has_any(_OF_ALL, line.lower())


def _without_secrets(text: str) -> str:
    if _has_any(OF_SHAPES, text):
        text = SHAPE.sub(HIDDEN, text)
    return _without_assigned(text, is_secret_field)


def redact_command(argv: Iterable[str]) -> List[str]:
    """Hide the secrets in a command's words, also one that follows its option."""
    hidden: List[str] = []
    takes_secret = False
    for word in argv:
        is_option = word.startswith("-")
        hidden.append(HIDDEN if takes_secret and not is_option else redact("", word))
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
        return HIDDEN if value and name and _is_secret_field(name) else _shown(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, Mapping):
        of_variables = name == "environment"
        shown = {
            key: redact(key, one)
            if of_variables and type(one) is str
            else redact_values(one, str(key))
            for key, one in value.items()
        }
        is_same = all(one is other for one, other in zip(shown.values(), value.values()))
        return _with_shown_names(value if is_same else shown)
    if kind is list or kind is tuple:
        if _PLAIN.issuperset(map(type, value)):
            return value
        some = [redact_values(one, name) for one in value]
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


_is_secret_field = lru_cache(maxsize=_MOST_KNOWN)(is_secret_field)


@lru_cache(maxsize=None)
def _shown_members(kind: type) -> Tuple[str, ...]:
    return tuple(one.name for one in fields(kind) if NAMES_A_PLACE not in one.metadata)


@lru_cache(maxsize=_MOST_KNOWN)
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


def _without_assigned(text: str, is_secret: Any) -> str:
    """Hide secrets inside a longer text, by the names that they are assigned to."""
    lower = text.lower()
    if "://" in text:
        text = _IN_ADDRESS.sub(HIDDEN, text)
    if _has_any(_OF_HEADERS, lower):
        text = _HEADER.sub(lambda found: found[1] + found[2] + HIDDEN, text)
    if "Basic " in text:
        text = _BASIC.sub(
            lambda found: found[1] + HIDDEN if _is_login(found[2]) else found[0], text
        )
    if _has_any(_OF_LOGINS, text):
        text = _LOGIN.sub(lambda found: (found[1] or found[3] or found[5]) + HIDDEN, text)
    if not _has_any(OF_NAMES, lower):
        return text
    for names, values in (_ASSIGNED, _OPTION):
        pieces: List[str] = []
        kept, found = 0, names.search(text)
        while found is not None:
            position = found.end()
            if any(map(is_secret, _names(found))):
                value = values.match(text, position)
                if value is not None:
                    pieces += [text[kept:position], HIDDEN]
                    kept = position = value.end()
            found = names.search(text, position)
        text = "".join(pieces) + text[kept:]
    return text


def _has_any(words: Sequence[str], text: str) -> bool:
    return any(map(text.__contains__, words))


def _names(found: "re.Match[str]") -> Iterable[str]:
    """Give a name that was found, also without the end of a line that JSON wrote before it."""
    name = found[1].strip("-").replace("-", "_")
    yield name
    if found.string[found.start(1) - 1 : found.start(1)] == "\\" and name[:1] in ("n", "r", "t"):
        yield name[1:]


def _is_login(text: str) -> bool:
    """Tell whether a text is `user:password` in base64."""
    try:
        return b":" in base64.b64decode(text + "=" * (-len(text) % 4), altchars=None)
    except (binascii.Error, ValueError):
        return False
