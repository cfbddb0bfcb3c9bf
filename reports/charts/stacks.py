"""Draw what a whole is made of, one stacked bar per cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from reports.charts.svg import broken, element, more_height, picture, stacked, text

_WIDTH, _LEFT, _RIGHT, _ROW = 960.0, 230.0, 90.0, 30.0
_NARROW, _TALL = 354.0, 50.0
_LETTER, _MOST_LEFT, _LINE = 7.0, 440.0, 20.0

Stack = tuple[str, Sequence[tuple[str, float]]]
"""The name of a bar, and its parts."""


def stacks(
    bars: Sequence[Stack],
    *,
    name: str,
    label: str,
    shown: Callable[[float], str],
    most: int | None = None,
    narrow: bool = False,
) -> str:
    """Draw bars on one axis; the same part has the same colour everywhere.

    Only the first are drawn where there may be ``most``, with room for the names of all.
    A narrow chart has each bar's name above it instead of beside it.
    """
    left = max(_LEFT, min(_MOST_LEFT, 8 + _LETTER * max(len(title) for title, _ in bars)))
    width, begin, tall = (_NARROW, 0.0, _TALL) if narrow else (_WIDTH, left, _ROW)
    parts = list(dict.fromkeys(part for _, pieces in bars for part, _ in pieces))
    bars = bars[:most]
    longest = max(sum(amount for _, amount in pieces) for _, pieces in bars) or 1.0
    scale = (width - begin - _RIGHT) / longest
    drawn, at, line = [], begin, 0.0
    for index, part in enumerate(parts):
        takes = 34 + _LETTER * len(part)
        if at > begin and at + takes > width:
            at, line = begin, line + _LINE
        drawn.append(
            element(
                "rect", class_=f"p{index % 8 + 1} part", x=at, y=line + 4, width=11.0, height=11.0
            )
        )
        drawn.append(text(at + 16, line + 14, part))
        at += takes
    higher = 0.0
    for row, (title, pieces) in enumerate(bars):
        words = broken(title, int(width / _LETTER)) if narrow else [title]
        higher += more_height(words)
        top, left = line + 28 + (row + 1) * tall - _ROW + higher, begin
        bar = stacked(0, top - 6 - more_height(words) if narrow else top + 14, words)
        for part, amount in pieces:
            if not amount:  # it only keeps its place in the legend
                continue
            said = element("title", f"{escape(part)}: {shown(amount)}")
            kind = f"p{parts.index(part) % 8 + 1} part"
            bar.append(
                element(
                    "rect", said, class_=kind, x=left, y=top, width=amount * scale, height=_ROW - 11
                )
            )
            left += amount * scale
        bar.append(text(left + 8, top + 14, shown(sum(amount for _, amount in pieces))))
        drawn.append(element("g", "".join(bar), data_bar=title))
    return picture(
        width, line + 32 + len(bars) * tall + higher, "".join(drawn), label=label, name=name
    )
