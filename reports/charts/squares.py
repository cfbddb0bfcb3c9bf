"""Draw a map over two factors: the darker a square, the more, with its number inside."""

from __future__ import annotations

from html import escape

from harness.analysis import numbers
from harness.sections.contract.blocks import Square, Squares
from reports.charts.svg import element, picture, text

_WIDTH, _NARROW = 760.0, 354.0
_ROW, _HEAD, _FOOT = 28.0, 26.0, 2.0
_CHARACTER, _WIDEST, _WIDEST_NARROW = 6.8, 220.0, 110.0
_LEAST, _MOST = 0.06, 0.6
"""How dense a square's colour is; words stay legible on the densest."""
_LONGEST_SQUARE = 120.0
_ROOM = 40.0
"""What a number needs."""


def squares(of: Squares, *, name: str, label: str, narrow: bool = False) -> str:
    """Draw all squares in shades of one colour, the largest number the densest."""
    width = _NARROW if narrow else _WIDTH
    widest = _WIDEST_NARROW if narrow else _WIDEST
    left = min(widest, 16 + _CHARACTER * max(map(len, of.rows)))
    across = min(_LONGEST_SQUARE, (width - left) / len(of.columns))
    top = max((one.value for line in of.squares for one in line if one), default=0.0) or 1.0
    drawn = []
    for column, words in enumerate(of.columns):
        fits = max(2, int((across - 4) / _CHARACTER))
        middle = left + (column + 0.5) * across
        drawn.append(text(middle, 16, _cut(words, fits), text_anchor="middle", class_="soft"))
    for row, words in enumerate(of.rows):
        y = _HEAD + row * _ROW
        drawn.append(text(0, y + 18, _cut(words, int((left - 8) / _CHARACTER))))
        for column, one in enumerate(of.squares[row]):
            if one is not None:
                drawn.append(_square(one, left + column * across, y, across, one.value / top))
    return picture(
        left + across * len(of.columns) if not narrow else width,
        _HEAD + _ROW * len(of.rows) + _FOOT,
        "".join(drawn),
        label=label,
        name=name,
    )


def _square(one: Square, x: float, y: float, across: float, share: float) -> str:
    density = f"{_LEAST + (_MOST - _LEAST) * max(0.0, share):.2f}"
    said = element("title", escape(one.said))
    shape = element(
        "rect",
        said,
        class_="s1",
        x=x + 1,
        y=y + 1,
        width=across - 2,
        height=_ROW - 2,
        fill_opacity=density,
    )
    if across < _ROOM:
        return shape
    return shape + text(x + across / 2, y + 18, numbers.number(one.value), text_anchor="middle")


def _cut(words: str, most: int) -> str:
    return words if len(words) <= most else f"{words[: max(1, most - 1)]}…"
