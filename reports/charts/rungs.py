"""Draw a ladder: one bar per rung from the device upwards, with its interval."""

from __future__ import annotations

from collections.abc import Sequence

from harness.analysis import numbers
from harness.analysis.files.ladder import Rung
from reports.charts.svg import element, picture, text, whisker

_WIDTH, _LEFT, _ROW = 960.0, 230.0, 30.0
_MOST_LEFT = 400.0
_LETTER = 7.2
_NARROW, _TALL = 354.0, 64.0


def rungs(ladder: Sequence[Rung], *, name: str, label: str, narrow: bool = False) -> str:
    """Draw rates from zero; beside each, its number and its share of the rung above.

    A narrow chart has its words above each bar instead of beside it.
    """
    named = 16 + _LETTER * max(len(rung.name) for rung in ladder)
    left = min(max(_LEFT, named), _MOST_LEFT)
    width, begin, tall = (_NARROW, 0.0, _TALL) if narrow else (_WIDTH, left, _ROW)
    said = [_said(ladder, row) for row in range(len(ladder))]
    room = 4.0 if narrow else 16 + _LETTER * max(map(len, said))
    top = max(r.rate.interval.high if r.rate.interval else r.rate.value for r in ladder) or 1.0
    scale = (width - begin - room) / top
    drawn = []
    for row, rung in enumerate(ladder):
        up, rate = 6 + (row + 1) * tall - _ROW, rung.rate
        drawn.append(text(0, up - 24 if narrow else up + 14, rung.name))
        drawn.append(
            element("rect", class_="p3", x=begin, y=up, width=rate.value * scale, height=_ROW - 11)
        )
        right = begin + rate.value * scale
        if rate.interval:
            low, high = (begin + end * scale for end in (rate.interval.low, rate.interval.high))
            middle = up + (_ROW - 11) / 2
            drawn += whisker(low, high, middle)
            right = max(right, high)
        beside = (0.0, up - 7) if narrow else (right + 8, up + 14)
        drawn.append(text(*beside, said[row]))
    return picture(width, 10 + len(ladder) * tall, "".join(drawn), label=label, name=name)


def _said(ladder: Sequence[Rung], row: int) -> str:
    rate = ladder[row].rate
    said = f"{numbers.number(rate.value)} {rate.unit}"
    if not row or not ladder[row - 1].rate.value:
        return said
    share = rate.value / ladder[row - 1].rate.value
    more = f"{numbers.share(share)} of" if share <= 1 else f"{numbers.ratio(share)} ×"
    return f"{said}, {more} the one above"
