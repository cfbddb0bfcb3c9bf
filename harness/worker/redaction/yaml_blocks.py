"""Find where a value ends that YAML writes over several lines: a block of text, or a list."""

from __future__ import annotations

import re
from typing import Sequence, Tuple

_OF_TEXT = re.compile(r"(?<!=)[|>][+-]?\d?[ \t]*\n")
_BEGINS = re.compile(r":\s*(?:[|>][+-]?\d?)?\s*$")


def end_of_block(text: str, between: str, position: int) -> int:
    """Find the end of the block that begins here; ``between`` stands before it, after its name.

    That is ``position`` itself where nothing of several lines begins.
    """
    begin = text.rfind("\n", 0, position) + 1
    lead = text[begin:position]
    indent = lead[: len(lead) - len(lead.lstrip(" \t"))]
    if "\n" in between and lead.strip() == "-":
        inside: Tuple[str, ...] = (f"{indent}-", f"{indent} ")
    elif indent and not lead.strip() and _OF_TEXT.search(between):
        inside = (indent,)
    else:
        return position
    end = _line_end(text, position)
    following = end
    while following < len(text):
        begin, following = following + 1, _line_end(text, following + 1)
        line = text[begin:following]
        if line.startswith(inside):
            end = following
        elif line.strip():
            break
    return end


def may_go_on(lines: Sequence[str]) -> bool:
    """Tell whether the last of some lines may belong to a block that an earlier one begins."""
    return lines[-1][:1] in (" ", "\t", "-") and any(map(_BEGINS.search, lines[:-1]))


def _line_end(text: str, position: int) -> int:
    found = text.find("\n", position)
    return len(text) if found < 0 else found
