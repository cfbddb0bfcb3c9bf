"""Draw speed-up over devices: a line and a band per cell, and the ideal."""

from __future__ import annotations

from collections.abc import Sequence

from harness.sections.contract.blocks import Curve
from reports.charts.svg import Scale, element, free_level, log_ticks, picture, text

_WIDTH, _HEIGHT = 960.0, 380.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 190.0, 16.0, 44.0
_LETTER, _MOST_RIGHT = 7.0, 440.0
_NARROW, _BESIDE, _ENTRY = 354.0, 40.0, 18.0


def _path(points: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def lines(series: Sequence[Curve], *, name: str, title: str, narrow: bool = False) -> str:
    """Draw lines on logarithmic axes, where ideal scaling is a straight diagonal.

    A narrow chart names its lines below it instead of at their ends.
    """
    named = min(_MOST_RIGHT, 8 + _LETTER * max(len(line.name) for line in series))
    width, right = (_NARROW, _BESIDE) if narrow else (_WIDTH, max(_RIGHT, named))
    points = [(line, point) for line in series for point in line.points]
    most = max(p.count for _, p in points)
    least = min(p.count for _, p in points)
    ideal = max(p.count / line.points[0].count for line, p in points)
    high = max(ideal, *(p.high or p.value for _, p in points)) * 1.1
    low = min(1.0, *(p.low or p.value for _, p in points)) * 0.9
    x = Scale(least, most, _LEFT, width - right, log=True)
    y = Scale(low, high, _HEIGHT - _BOTTOM, _TOP, log=True)
    drawn = []
    for value in log_ticks(low, high):
        level = y(value)
        drawn.append(element("line", class_="grid", x1=_LEFT, x2=width - right, y1=level, y2=level))
        drawn.append(text(_LEFT - 8, level + 4, f"{value:g} ×", text_anchor="end", class_="soft"))
    drawn += [
        text(x(count), _HEIGHT - 22, str(count), text_anchor="middle", class_="soft")
        for count in sorted({p.count for _, p in points})
    ]
    drawn.append(text(_LEFT, _HEIGHT - 4, "devices", class_="soft"))
    base = min(line.points[0].count for line in series)
    best = [(x(base), y(1.0)), (x(most), y(most / base))]
    drawn.append(element("path", class_="ideal", d=_path(best)))
    drawn.append(text(best[1][0] + 8, best[1][1] + 4, "ideal", class_="soft"))
    ends = [best[1][1] + 4]
    for index, line in enumerate(series):
        colour, below = index % 8 + 1, _HEIGHT + (index + 1) * _ENTRY
        drawn += _line(line, x, y, colour=colour)
        if narrow:
            drawn.append(element("circle", class_=f"s{colour}", cx=5.0, cy=below - 4, r=3.5))
            drawn.append(text(16, below, line.name))
        else:
            drawn.append(_end(line, x, y, ends))
    height = _HEIGHT + len(series) * _ENTRY + 6 if narrow else _HEIGHT
    return picture(width, height, "".join(drawn), label=title, name=name)


def _line(line: Curve, x: Scale, y: Scale, *, colour: int) -> list[str]:
    upper = [(x(p.count), y(p.high or p.value)) for p in line.points]
    lower = [(x(p.count), y(p.low or p.value)) for p in reversed(line.points)]
    middle = [(x(p.count), y(p.value)) for p in line.points]
    return [
        element("path", class_=f"s{colour} band", d=_path([*upper, *lower]) + "Z"),
        element("path", class_=f"curve l{colour}", d=_path(middle)),
        *(element("circle", class_=f"s{colour}", cx=a, cy=b, r=3.5) for a, b in middle),
    ]


def _end(line: Curve, x: Scale, y: Scale, ends: list[float]) -> str:
    """Name a line at its end, below the names that stand there already."""
    last = line.points[-1]
    level = free_level(y(last.value) + 4, ends)
    return text(x(last.count) + 8, level, line.name)
