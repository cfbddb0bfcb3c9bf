"""Hide secrets in variables, texts and values that are written to a run or shown on a page.

Applied where a run is written, and again where one is read to be shown. A variable is hidden when
in doubt: its harmless value costs nothing. In a text only what is assigned to a telling name, or
has the shape of a secret, becomes "(redacted)"; the words around it stay.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, Iterable, List, Mapping, Sequence, Tuple

from harness.worker.redaction.shapes import SHAPE, is_random, is_secret_field, is_secret_variable

HIDDEN = "(redacted)"

_IN_ADDRESS = re.compile(r"""(?<=://)[^/\s"'<>]+(?=@)""")
# A name is looked for by itself, from where it begins, and its value only if the name is telling:
# whatever looks at a long text from each of its letters takes hours.
_ASSIGNED = (
    re.compile(r"""(?<![\w.-])([\w.-]+)(\\*["']?\s*(?:=>|:=|[=:])\s*)"""),
    re.compile(
        r"""\(redacted\)|(?P<quote>\\+["'])(?:.*?)(?P=quote)|"(?:[^"\\\n]|\\.)*"|"""
        r"""'(?:[^'\\\n]|\\.)*'|(?!\\*["'])[^\s&;,"'\\)}\]]+|["'][^\s"']+"""
    ),
)
_OPTION = (
    re.compile(r"""(?<![\w-])--?([\w-]+)\s+"""),
    re.compile(r""""[^"\n]*"|'[^'\n]*'|[^\s"'-]\S*"""),
)
_HEADER = re.compile(
    r"""((?:Proxy-)?Authorization|(?:Set-)?Cookie|X-[\w-]*(?:Key|Token|Auth)[\w-]*)"""
    r"""(\\*["']?\s*[:=]\s*\\*["']?)([^\r\n"'\\]+)""",
    re.IGNORECASE,
)
_BASIC = re.compile(r"\b(Basic )([A-Za-z0-9+/_-]{6,}={0,2})")
_LOGIN = re.compile(
    r"""(\blogin\s+\S+\s+(?:account\s+\S+\s+)?password\s+)(\S+)"""
    r"""|(\b(?:sshpass|mysql|mysqldump|mariadb|smbclient|ldapsearch|redis-cli)\b[^\n]{0,500}?\s-[pwa]\s*)([^\s-]\S*)"""
    r"""|(\bcurl\b[^\n]{0,500}?\s(?:-u|--user)[\s=]+)(\S+)"""
)
_WORD = re.compile(r"[A-Za-z0-9+=_-]{24,}")
_SUSPICIOUS = re.compile(
    r"[=:@]|-----BEGIN|_|-[a-z]|login|Basic |Bearer |eyJ|AKIA|ASIA|AIza|ya29|\bs\.|SG\."
)
_SHORTEST = 8
"""A shorter value of a secret variable may be an honest word elsewhere."""
_LONGEST = 2000


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
    if _SUSPICIOUS.search(text) is None:
        return text
    return _without_assigned(SHAPE.sub(HIDDEN, text), is_secret_field)


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
    """Hide the secrets in a value as JSON holds it; of an ``environment``, as of variables."""
    if isinstance(value, str):
        return HIDDEN if value and name and is_secret_field(name) else redact_text(value)
    if isinstance(value, Mapping):
        if name == "environment":
            return {
                key: redact(key, one) if isinstance(one, str) else redact_values(one, key)
                for key, one in value.items()
            }
        return {key: redact_values(one, str(key)) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [redact_values(one) for one in value]
    return value


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
    text = _IN_ADDRESS.sub(HIDDEN, text)
    text = _HEADER.sub(lambda found: found[1] + found[2] + HIDDEN, text)
    text = _BASIC.sub(lambda found: found[1] + HIDDEN if _is_login(found[2]) else found[0], text)
    text = _LOGIN.sub(lambda found: (found[1] or found[3] or found[5]) + HIDDEN, text)
    for names, values in (_ASSIGNED, _OPTION):
        pieces: List[str] = []
        kept, found = 0, names.search(text)
        while found is not None:
            position = found.end()
            if is_secret(found[1].strip("-").replace("-", "_")):
                value = values.match(text, position)
                if value is not None:
                    pieces += [text[kept:position], HIDDEN]
                    kept = position = value.end()
            found = names.search(text, position)
        text = "".join(pieces) + text[kept:]
    return text


def _is_login(text: str) -> bool:
    """Tell whether a text is `user:password` in base64."""
    try:
        return b":" in base64.b64decode(text + "=" * (-len(text) % 4), altchars=None)
    except (binascii.Error, ValueError):
        return False
