"""Set the words of a figure's rows: a name left and a number right, on lines that hold both."""

from __future__ import annotations

from collections.abc import Sequence

from reports.charts.svg import LINE, broken, text

_LETTER, _DIGIT, _APART = 6.0, 6.4, 10.0
"""How wide letters, digits and the gap between them are, rather too wide."""
_BASE = 14.0

Lines = Sequence[tuple[str, str]]
"""What stands left and right on each line."""


def set_alike(rows: Sequence[tuple[str, str]], width: float) -> list[Lines]:
    """Put a name and what is said of it on one line, or in all rows below each other."""
    most = int(width / _LETTER)
    if all(_LETTER * len(name) + _APART + _DIGIT * len(said) <= width for name, said in rows):
        return [[row] for row in rows]
    return [[*((one, "") for one in broken(name, most)), ("", said)] for name, said in rows]


def drawn(lines: Lines, top: float, width: float) -> list[str]:
    """Draw all lines below each other."""
    words = []
    for at, (left, right) in enumerate(lines):
        base = top + _BASE + at * LINE
        words += [text(0, base, left)] if left else []
        words += [text(width, base, right, text_anchor="end")] if right else []
    return words
