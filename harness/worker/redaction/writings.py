"""What a line says once its colours and encodings are undone: they part a name from its `=`."""

from __future__ import annotations

import re

COLOURS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\))")
"""What steers a terminal: ECMA-48's control sequences and commands."""
_ENCODED = {
    form: character
    for character in "\"'=:"
    for form in (f"u00{ord(character):02x}", f"%{ord(character):02x}", f"&#{ord(character)};")
}
_ENCODED.update({"&quot;": '"', "&apos;": "'"})
_BEGINNINGS = ("u00", "%2", "%3", "&#", "&q", "&a", "&Q", "&A")
_ENCODINGS = re.compile(
    "|".join((r"\\+" if form[0] == "u" else "") + re.escape(form) for form in _ENCODED),
    re.IGNORECASE,
)


def without_colours(line: str) -> str:
    """Leave out what a terminal would not show."""
    return COLOURS.sub("", line) if "\x1b" in line else line


def decoded(line: str) -> str:
    """Write quotes and what assigns as themselves where JSON, an address or HTML encoded them."""
    if not any(map(line.__contains__, _BEGINNINGS)):
        return line
    return _ENCODINGS.sub(lambda found: _ENCODED[found[0].lstrip("\\").lower()], line)
