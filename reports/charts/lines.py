"""Draw what grows with a count: a line and a band per cell.

Efficiency stands beside all and 80 % of the ideal, other ratios beside what they begin with.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.analysis.scaling.efficiency import ENOUGH
from harness.sections.contract.blocks import Curve, Curves
from reports.charts.colours import colour_of
from reports.charts.svg import (
    Scale,
    broken,
    element,
    free_level,
    more_height,
    picture,
    stacked,
    text,
    ticks,
)

_WIDTH, _HEIGHT = 960.0, 380.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 190.0, 16.0, 44.0
_LETTER, _MOST_RIGHT = 7.0, 440.0
_NARROW, _BESIDE, _ENTRY = 354.0, 40.0, 18.0
_TOPMOST, _DASHES = 1.05, 4
_APART = 0.06
"""Labels of levels closer than this share of the height would stand on one another."""


def _path(points: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def lines(
    of: Curves, colours: Mapping[str, int], *, name: str, title: str, narrow: bool = False
) -> str:
    """Draw values from zero over a count, on a logarithmic axis where it does not begin at zero.

    A narrow chart names its lines below it instead of at their ends.
    """
    series = of.curves
    named = min(_MOST_RIGHT, 8 + _LETTER * max(len(line.name) for line in series))
    width, right = (_NARROW, _BESIDE) if narrow else (_WIDTH, max(_RIGHT, named))
    points = [point for line in series for point in line.points]
    marks = sorted({point.count for point in points})
    x = Scale(marks[0], marks[-1], _LEFT, width - right, log=marks[0] > 0)
    y = Scale(0.0, max(_TOPMOST, *(p.high or p.value for p in points)), _HEIGHT - _BOTTOM, _TOP)
    drawn = []
    marked = (1.0, ENOUGH) if of.are_shares else (1.0,)
    others = [one for one in ticks(0.0, y.high, 6) if abs(one - marked[-1]) > _APART * y.high]
    for value in sorted((*others, marked[-1])):
        level = y(value)
        kind = "ideal" if value in marked else "grid"
        drawn.append(element("line", class_=kind, x1=_LEFT, x2=width - right, y1=level, y2=level))
        words = f"{100 * value:.0f} %" if of.are_shares else f"{value:.3g} ×"
        drawn.append(text(_LEFT - 8, level + 4, words, text_anchor="end", class_="soft"))
    drawn += [
        text(x(count), _HEIGHT - 22, str(count), text_anchor="middle", class_="soft")
        for count in marks
    ]
    drawn.append(text(_LEFT, _HEIGHT - 4, of.counts, class_="soft"))
    letters = int((width - 30) / _LETTER)
    ends: list[float] = []
    below = _HEIGHT
    for index, line in enumerate(series):
        colour = colour_of(colours, line.run, line.framework)
        dash = f"d{index % _DASHES + 1}"
        drawn += _line(line, x, y, colour=colour, dash=dash)
        if narrow:
            kind, named_as = f"curve l{colour} {dash}", broken(line.name, letters)
            below += _ENTRY
            drawn.append(element("path", class_=kind, d=f"M0 {below - 4:.0f}H24"))
            drawn += stacked(30, below, named_as)
            below += more_height(named_as)
        else:
            drawn.append(_end(line, x, y, ends))
    height = below + 6 if narrow else _HEIGHT
    return picture(width, height, "".join(drawn), label=title, name=name)


def _line(line: Curve, x: Scale, y: Scale, *, colour: int, dash: str) -> list[str]:
    upper = [(x(p.count), y(p.high or p.value)) for p in line.points]
    lower = [(x(p.count), y(p.low or p.value)) for p in reversed(line.points)]
    middle = [(x(p.count), y(p.value)) for p in line.points]
    return [
        element("path", class_=f"s{colour} band", d=_path([*upper, *lower]) + "Z"),
        element("path", class_=f"curve l{colour} {dash}", d=_path(middle)),
        *(element("circle", class_=f"s{colour}", cx=a, cy=b, r=3.5) for a, b in middle),
    ]


def _end(line: Curve, x: Scale, y: Scale, ends: list[float]) -> str:
    """Name a line at its end, below the names that stand there already."""
    last = line.points[-1]
    level = free_level(y(last.value) + 4, ends)
    return text(x(last.count) + 8, level, line.name)
