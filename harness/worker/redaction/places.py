"""Hide what stands where a secret does: after a telling name, in an address, a header, a login."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Callable, Iterable, List, Match, Pattern, Sequence

from harness.worker.redaction.names import OF_NAMES, is_random, is_written_before_secret
from harness.worker.redaction.shapes import BEGINS, compiled
from harness.worker.redaction.yaml_blocks import end_of_block

HIDDEN = "(redacted)"

# `user:password@`: to the last @ before a /, in addresses of databases to the last of the word,
# else to the first. A number after the colon is a port.
_USER = r"""(?!\[)[^/\s"'<>@:]*:(?!\d{1,5}(?:[/?#]|$))"""
_IN_ADDRESS = (
    rf"""(?<=://)(?<!http://)(?<!https://)(?<!ssh://)(?<!git://){_USER}[^\s"'<>]{{1,256}}(?=@)|"""
    rf"""(?<=://)[^/\s"'<>]+(?=@)|(?<=://){_USER}[^\s"'<>@]{{1,256}}(?=@)"""
)
_WITHOUT_SCHEME = (
    r"""(?<![\w:/.@-])[\w.-]+:[^\s:/@"'=,]{1,256}(?=@(?!sha\d)[A-Za-z0-9][\w.-]*:\d{2,5}\b)"""
)
# A name is looked for by itself, from where it begins, and its value only if the name is telling:
# whatever looks at a long text from each of its letters takes hours.
_ASSIGNED = re.compile(
    r"""(?<![\w.-])([\w.-]+)(\\*["']?\s*(?:=>|:=|[=:])\s*(?:(?:[|>][+-]?\d?|[!&]\S*|-)\s+)*)"""
)
_ELEMENT = re.compile(r"""<([\w.:-]+)>\s*""")
_PAIR = re.compile(
    r"""(?<![\w-])(?:name|key)\\*["']?\s*[:=]\s*\\*["']?([\w.-]+)\\*["']?[\s,]*"""
    r"""\\*["']?value\\*["']?\s*[:=]\s*""",
    re.IGNORECASE,
)
_OPTION = re.compile(r"""(?:(?<![\w-])|(?<=\\[nrt]))--?([\w-]+)(?:\s+|\\*["']\s*,\s*)""")
_BESIDE = re.compile(r"""(?<![\w.-])([\w.-]+)[ \t]+""")
_ASSIGNED_VALUE = re.compile(
    r"""\(redacted\)|(?P<three>(?:\\*"){3}|(?:\\*'){3})[\s\S]*?(?:(?P=three)|\Z)|"""
    r"""(?P<quote>\\+["'])(?:.*?)(?P=quote)|"(?:[^"\\\n]|\\.)*"|"""
    r"""'(?:[^'\\\n]|\\.)*'|"[^"\n]*(?:\n[ \t]+[^"\n]*){1,20}"|"""
    r"""(?!\\*["'])(?:[^\s&;,"'\\)}\]]|\\(?![nrt"'\\]))+|\\*["'][^\s"']+"""
)
_PREFIX = re.compile(r"""[bBuUrRfF]{1,2}(?=\\*["'])""")
_CALL = re.compile(r"""[\w.]{1,100}(?=\()""")
_OF_SHELL = re.compile(r"""[^\s"'\\]+(?:\\(?![nrt"'])[^\s"'\\]*)*""")
_ELEMENT_VALUE = re.compile(r"[^<\n]+")
_OPTION_VALUE = re.compile(r""""[^"\n]*"|'[^'\n]*'|[^\s"'-](?:[^\s\\]|\\(?![nrt]))*""")
_BESIDE_VALUE = re.compile(
    r"""(?!(?:is|are|was|were|has|have|had|not|and|or|in|of|for|from|to|the|an?|by|at|on|as|if|with|"""
    r"""must|should|can|could|may|might|will|would|does|did|do|isn't|wasn't|doesn't|missing|required|"""
    r"""expired|invalid|given|set|unset|found|empty|header|parameter|argument|option|value|values|"""
    r"""variable|environment|env|field|file|files|path|name|names|type|length|size|count|here|now|"""
    r"""failed|error|\(redacted\))(?![\w-]))"""
    r"""(?:"[^"\n]*"|'[^'\n]*'|[^\s"'=:,;.(){}\[\]<>|&-](?:[^\s"',;)}\]\\]|\\(?![nrt"']))*)"""
)
_BRACKETS = re.compile(r"""["'\[\](){}]|\\.""")
_QUOTED = re.compile(r""""(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""")
_HEADER = (
    r"""(?i)((?:Proxy-)?Authorization|(?:Set-)?Cookie|X-[\w-]*(?:Key|Token|Auth)[\w-]*)"""
    r"""(\\*["']?\s*[:=]\s*\\*["']?)([^\r\n"'\\]+)"""
)
_OF_HEADERS = ("authorization", "cookie", "x-")
_SCHEME = rf"{BEGINS}(?:Bearer|Negotiate) [\w.~+/=-]{{8,}}"
_BASIC = rf"{BEGINS}(Basic )([A-Za-z0-9+/_-]{{6,}}={{0,2}})"
_CLIENTS = (
    *("sshpass", "mysql", "mysqldump", "mysqladmin", "mariadb", "mariadb-dump", "smbclient"),
    *("ldapsearch", "ldapwhoami", "redis-cli", "mongo", "mongosh"),
)
_SAID = r"""\\*["']?(?:[^\s\\"'-]|\\(?![nrt\\"']))(?:[^\s\\"']|\\(?![nrt\\"']))*"""
_LOGIN = (
    rf"""({BEGINS}login\s+\S+\s+(?:account\s+\S+\s+)?password\s+){_SAID}"""
    rf"""|({BEGINS}(?:{"|".join(_CLIENTS)})\b[^\n]{{0,500}}?\s-[pwa]\s*){_SAID}"""
    rf"""|((?<![\w-])-u[ =](?!\d+:\d+\b)[\w.@-]+:)[^\s\\"',]+"""
    rf"""|({BEGINS}curl\b[^\n]{{0,500}}?\s(?:-[uU][\s=]*|--(?:proxy-)?user[\s=]+)){_SAID}"""
    rf"""|({BEGINS}(?:ipmitool\b[^\n]{{0,500}}?\s-P|smbclient\b[^\n]{{0,500}}?\s-U\s*[\w.\\-]+%)\s*)"""
    rf"""{_SAID}|({BEGINS}login\([^()\n]{{0,200}}?\bkey\s*=\s*\\*["'])[^"'\n\\]+"""
    rf"""|({BEGINS}(?:docker|podman|helm|skopeo|oras|buildah|az|oc|apptainer|singularity)\s+"""
    rf"""(?:registry\s+)?login\b[^\n]{{0,200}}?\s-p\s*){_SAID}"""
    rf"""|({BEGINS}(?:wandb|comet|neptune|vault|huggingface-cli|hf|clearml)\s+login\s+(?:--relogin\s+)?)"""
    rf"""{_SAID}"""
)
_OF_LOGINS = (
    "-u ",
    "-u=",
    "login",
    "mysql",
    "mariadb",
    "smbclient",
    "ipmitool",
    "ldap",
    "redis-cli",
    "mongo",
    "curl",
    "sshpass",
)
_OF_PGPASS = (":543", ":6432:", ":*:")
_PGPASS = r"""(?<![\w.*:-])([\w.*-]+:(?:543\d|6432|\*):[A-Za-z_*][\w-]*:[\w.*-]+:)[^\s"',\\:]+"""
_OF_SQL = re.compile(
    r"""(\b(?:IDENTIFIED\s+BY(?:\s+PASSWORD)?|PASSWORD|PASSPHRASE)\s+)(?:'[^'\n]+'|"[^"\n]+")""",
    re.IGNORECASE,
)
_SHORT_OPTION = re.compile(r"""((?<![\w-])-t[ =])([\w+/=.-]{16,})""")
_KEY_FILE = (
    r"""(username\\*"\s*:\s*\\*"[^"\\\n]{0,100}\\*"\s*,\s*\\*"key\\*"\s*:\s*\\*")[^"\\\n]{8,100}"""
)
_JWK = r"""("(?:d|p|q|dp|dq|qi|k)\\*"\s*:\s*\\*")[\w-]{20,}"""
_OF_ALL = (
    *(*OF_NAMES, *_OF_LOGINS[:-1], *_OF_PGPASS),
    *("basic ", "negotiate ", "@", "kty", "identified", "-t ", "-t="),
)
"""One of these stands in each line that holds a place; some in those that hold a name.

Of the logins the last is left out: ``sshpass`` holds ``pass``, which is among the names."""


def may_hold_placed(line: str) -> bool:
    """Tell whether it is worth to look for places of secrets in a line."""
    return has_any(_OF_ALL, line.lower())


def without_placed(text: str, is_secret: Callable[[str], bool]) -> str:
    """Hide secrets inside a longer text, by the names and places that they are given."""
    lower = text.lower()
    if "@" in text:
        if "://" in text:
            text = compiled(_IN_ADDRESS).sub(HIDDEN, text)
        text = compiled(_WITHOUT_SCHEME).sub(HIDDEN, text)
    if has_any(_OF_PGPASS, text):
        text = compiled(_PGPASS).sub(rf"\1{HIDDEN}", text)
    if has_any(_OF_HEADERS, lower):
        text = compiled(_HEADER).sub(lambda found: found[1] + found[2] + HIDDEN, text)
    if "bearer " in lower or "negotiate " in lower:
        text = compiled(_SCHEME).sub(HIDDEN, text)
    if "Basic " in text:
        text = compiled(_BASIC).sub(
            lambda found: found[1] + HIDDEN if _is_login(found[2]) else found[0], text
        )
    if has_any(_OF_LOGINS, text):
        text = compiled(_LOGIN).sub(
            lambda found: "".join(filter(None, found.groups())) + HIDDEN, text
        )
    if "password" in lower or "identified" in lower or "passphrase" in lower:
        text = _OF_SQL.sub(rf"\1{HIDDEN}", text)
    if "-t" in text:
        text = _SHORT_OPTION.sub(
            lambda found: found[1] + HIDDEN if is_random(found[2]) else found[0], text
        )
    if "kty" in text:
        text = compiled(_JWK).sub(rf"\1{HIDDEN}", text)
    if not has_any(OF_NAMES, lower):
        return text
    if "username" in text:
        text = compiled(_KEY_FILE).sub(rf"\1{HIDDEN}", text)
    text = _without_named(text, _ASSIGNED, _ASSIGNED_VALUE, is_secret)
    if "value" in lower:
        text = _without_named(text, _PAIR, _ASSIGNED_VALUE, is_secret)
    if "</" in text:
        text = _without_named(text, _ELEMENT, _ELEMENT_VALUE, is_secret)
    text = _without_named(text, _OPTION, _OPTION_VALUE, is_secret)
    return _without_named(text, _BESIDE, _BESIDE_VALUE, is_written_before_secret)


def is_client(word: str) -> bool:
    """Tell whether a word of a command starts a program that takes its password after -p."""
    return word.rpartition("/")[2] in _CLIENTS


def has_any(words: Sequence[str], text: str) -> bool:
    """Tell whether one of some words stands in a text."""
    return any(map(text.__contains__, words))


def _without_named(
    text: str, names: Pattern[str], values: Pattern[str], is_secret: Callable[[str], bool]
) -> str:
    pieces: List[str] = []
    kept, found = 0, names.search(text)
    while found is not None:
        position = found.end()
        if any(map(is_secret, _names(found))):
            is_shell = names is _ASSIGNED and found[1].isupper() and found[2] == "="
            end = _end_of_value(text, position, _OF_SHELL if is_shell else values)
            if names is _ASSIGNED:
                end = max(end, end_of_block(text, found[2], position))
            if end > position:
                pieces += [text[kept:position], HIDDEN]
                kept = position = end
        found = names.search(text, position)
    return "".join(pieces) + text[kept:]


def _end_of_value(text: str, position: int, values: Pattern[str]) -> int:
    """Find where a value ends; what JSON or Python puts in brackets is one, however deep."""
    if text.startswith(HIDDEN, position):
        return position + len(HIDDEN)
    if values in (_ASSIGNED_VALUE, _OF_SHELL):
        begun = _PREFIX.match(text, position)
        position = position if begun is None else begun.end()
        called = _CALL.match(text, position)
        if called is not None or text[position : position + 1] in ("[", "{"):
            return _end_of_brackets(text, position if called is None else called.end())
    found = values.match(text, position)
    if found is None and values is _OF_SHELL:  # it is quoted
        found = _ASSIGNED_VALUE.match(text, position)
    return position if found is None else found.end()


def _end_of_brackets(text: str, position: int) -> int:
    """Find the bracket that closes the one here; the end of the text where none does."""
    depth = 0
    while True:
        found = _BRACKETS.search(text, position)
        if found is None:
            return len(text)
        position = found.end()
        if found[0] in "[({":
            depth += 1
        elif found[0] in "])}":
            depth -= 1
            if depth <= 0:
                return position
        elif found[0] in "\"'":
            quoted = _QUOTED.match(text, found.start())
            position = position if quoted is None else quoted.end()


def _names(found: Match[str]) -> Iterable[str]:
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
