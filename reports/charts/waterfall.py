"""Draw a waterfall: from a cell's step to a longer one's, one bar for each part between them."""

from __future__ import annotations

from harness.analysis import numbers
from harness.sections.contract.blocks import Fall, Waterfall
from reports.charts.svg import Scale, element, picture, text, ticks, whisker

_WIDTH, _ROW, _TOP = 960.0, 26.0, 26.0
_NARROW, _TALL = 354.0, 46.0
_THICK = 15.0
_CHARACTER, _WIDEST = 6.8, 330.0
_ENDS = 6.0
"""Room beside what lies furthest out."""
_THIN = 1.5
"""A part that is too small to be seen is drawn so wide."""
_MILLISECONDS = 1e3
_ADDS, _TAKES, _UNNAMED = "p3", "p2", "p5"
_KEY = ((_ADDS, "adds to the step"), (_TAKES, "takes from it"), (_UNNAMED, "unexplained"))


def waterfall(drawn: Waterfall, *, name: str, label: str, narrow: bool = False) -> str:
    """Draw each part where the ones above it end; its whisker is about the end of its bar.

    The axis shows steps, and begins where the parts do. A narrow chart has words above each bar.
    """
    (shorter, begin_s), (longer, end_s) = drawn.shorter, drawn.longer
    starts = [begin_s]
    for fall in drawn.falls:
        starts.append(starts[-1] + fall.difference_s)
    names = [shorter, *(fall.name for fall in drawn.falls), longer]
    said = [numbers.seconds(begin_s), *(fall.said for fall in drawn.falls), numbers.seconds(end_s)]
    left, right = (min(_WIDEST, 16 + _CHARACTER * max(map(len, one))) for one in (names, said))
    x = _scale(drawn, starts, left, right, narrow=narrow)
    tall, width = (_TALL, _NARROW) if narrow else (_ROW, _WIDTH)
    bottom = _TOP + len(names) * tall
    shapes = [_key(), *_axis(x, bottom)]
    shapes += [
        element("line", class_="ideal", x1=x(at), x2=x(at), y1=_TOP, y2=bottom)
        for at in (begin_s, end_s)
    ]
    for row, at in ((0, begin_s), (len(names) - 1, end_s)):
        shapes.append(
            element("circle", class_="p1", cx=x(at), cy=_middle(row, narrow=narrow), r=4.5)
        )
    for row, fall in enumerate(drawn.falls, start=1):
        shapes += _bar(fall, starts[row - 1], x, row, narrow=narrow)
    for row, words in enumerate(zip(names, said, strict=True)):
        shapes += _words(row, *words, right, narrow=narrow)
    return picture(width, bottom + 24, "".join(shapes), label=label, name=name)


def _scale(
    drawn: Waterfall, starts: list[float], left: float, right: float, *, narrow: bool
) -> Scale:
    reached = [*starts, drawn.longer[1]]
    for start, fall in zip(starts, drawn.falls, strict=False):
        if fall.interval:
            reached += [start + fall.interval.low, start + fall.interval.high]
    begin, end = (_ENDS, _NARROW - _ENDS) if narrow else (left + _ENDS, _WIDTH - right - _ENDS)
    return Scale(min(reached), max(reached), begin, end)


def _key() -> str:
    shapes, at = [], 0.0
    for kind, words in _KEY:
        shapes.append(element("rect", class_=f"{kind} part", x=at, y=2.0, width=11.0, height=11.0))
        shapes.append(text(at + 16, 12, words, class_="soft"))
        at += 34 + _CHARACTER * len(words)
    return "".join(shapes)


def _axis(x: Scale, bottom: float) -> list[str]:
    shapes = []
    low, high = x.low * _MILLISECONDS, x.high * _MILLISECONDS
    for value in ticks(low, high, 4):
        at = x(value / _MILLISECONDS)
        shapes.append(element("line", class_="grid", x1=at, x2=at, y1=_TOP, y2=bottom))
        shapes.append(text(at, bottom + 16, f"{value:g} ms", text_anchor="middle", class_="soft"))
    return shapes


def _middle(row: int, *, narrow: bool) -> float:
    """Give the height at which a row's bar lies."""
    return _TOP + (row * _TALL + _TALL - 12 if narrow else (row + 0.5) * _ROW)


def _words(row: int, name: str, said: str, room: float, *, narrow: bool) -> tuple[str, str]:
    middle = _middle(row, narrow=narrow)
    if narrow:
        above = middle - _THICK / 2 - 5
        right = text(_NARROW, above, said, text_anchor="end", class_="over")
        return text(0, above, name, class_="over"), right
    return text(0, middle + 4, name), text(_WIDTH - room + 12, middle + 4, said)


def _bar(fall: Fall, start_s: float, x: Scale, row: int, *, narrow: bool) -> list[str]:
    """Draw one part: its bar, its whisker, and the way on to the next row."""
    end_s = start_s + fall.difference_s
    low, high = sorted((x(start_s), x(end_s)))
    middle = _middle(row, narrow=narrow)
    kind = (_ADDS if fall.difference_s > 0 else _TAKES) if fall.is_named else _UNNAMED
    shapes = [
        element(
            "rect",
            class_=kind,
            x=low,
            y=middle - _THICK / 2,
            width=max(_THIN, high - low),
            height=_THICK,
        )
    ]
    if fall.interval:
        shapes += whisker(x(start_s + fall.interval.low), x(start_s + fall.interval.high), middle)
    below = _middle(row + 1, narrow=narrow) - _THICK / 2
    shapes.append(
        element("line", class_="axis", x1=x(end_s), x2=x(end_s), y1=middle + _THICK / 2, y2=below)
    )
    return shapes
