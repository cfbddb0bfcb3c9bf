"""Draw cells below the machine's ceilings: operations per second over intensity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from harness.analysis import numbers
from harness.analysis.context.roofline import RoofCeiling, RoofPoint
from reports.charts.colours import colour_of
from reports.charts.svg import (
    Scale,
    broken,
    element,
    log_ticks,
    more_height,
    picture,
    stacked,
    text,
)

_WIDTH, _HEIGHT = 960.0, 420.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 16.0, 20.0, 44.0
_NARROW, _BESIDE, _ENTRY = 354.0, 8.0, 18.0
_NAME, _LETTER, _MOST_NAMED = 15.0, 6.6, 20


def roofline(
    ceilings: Sequence[RoofCeiling],
    points: Sequence[RoofPoint],
    colours: Mapping[str, int],
    *,
    name: str,
    narrow: bool = False,
) -> str:
    """Draw bandwidths as slopes, peaks as levels, each named measured or declared.

    Cells are named beside the plot, with a line to their dots; in a narrow chart below it, by
    number.
    """
    room = min(0.45 * _WIDTH, _RIGHT + _LETTER * max(len(one.name) for one in points))
    width, beside = (_NARROW, _BESIDE) if narrow else (_WIDTH, room)
    peaks = [c for c in ceilings if c.flops]
    slopes = [c for c in ceilings if c.bytes_per_s]
    peak = max((c.flops for c in peaks if c.flops), default=max(p.flops for p in points))
    steepest = max((c.bytes_per_s for c in slopes if c.bytes_per_s), default=peak)
    intensities = [p.intensity for p in points] + [peak / steepest]
    x = Scale(min(intensities) / 4, max(intensities) * 4, _LEFT, width - beside, log=True)
    reached = [p.flops for p in points]
    # A ceiling that was claimed or measured too low is beaten; what beats it stands above it.
    highest = max(peak, *reached) * 2
    y = Scale(min(reached) / 4, highest, _HEIGHT - _BOTTOM, _TOP, log=True)
    drawn = []
    for value in log_ticks(y.low, y.high):
        drawn.append(element("line", class_="grid", x1=x.start, x2=x.end, y1=y(value), y2=y(value)))
        label = f"{numbers.number(value / 1e9)}"
        drawn.append(text(x.start - 8, y(value) + 4, label, text_anchor="end", class_="soft"))
    drawn += [
        text(x(value), _HEIGHT - 22, f"{value:g}", text_anchor="middle", class_="soft")
        for value in log_ticks(x.low, x.high)
    ]
    drawn.append(text(x.start, _HEIGHT - 4, "operations per byte", class_="soft"))
    drawn.append(text(4, 12, "Gflop/s", class_="soft"))
    for ceiling in peaks:
        assert ceiling.flops is not None
        level = y(ceiling.flops)
        start = x(max(x.low, ceiling.flops / steepest))
        drawn.append(element("line", class_="axis", x1=start, x2=x.end, y1=level, y2=level))
        label = f"{ceiling.name} ({ceiling.how})"
        drawn.append(text(x.end, level - 5, label, text_anchor="end"))
    for ceiling in slopes:
        assert ceiling.bytes_per_s is not None
        left = max(x.low, y.low / ceiling.bytes_per_s)
        right = min(x.high, peak / ceiling.bytes_per_s)
        low, high = left * ceiling.bytes_per_s, right * ceiling.bytes_per_s
        drawn.append(element("line", class_="axis", x1=x(left), x2=x(right), y1=y(low), y2=y(high)))
        drawn.append(text(x(left) + 24, y(low) + 8, f"{ceiling.name} ({ceiling.how})"))
    ordered = sorted(points, key=lambda one: -one.flops)
    named = ordered[:_MOST_NAMED]
    lowest = _HEIGHT - _BOTTOM - (_ENTRY if narrow else 0)  # there the slope's name stands
    levels = _levels([y(one.flops) + 4 for one in named], lowest)
    below = _HEIGHT
    for index, point in enumerate(ordered):
        across, up = x(point.intensity), y(point.flops)
        kind = f"s{colour_of(colours, point.run, point.framework)}"
        said = element("title", escape(point.name))
        drawn.append(element("circle", said, class_=kind, cx=across, cy=up, r=5.0))
        if index >= len(named):
            continue
        if narrow:
            drawn.append(text(across + 8, levels[index], str(index + 1)))
            words = broken(f"{index + 1} {point.name}", int(width / _LETTER))
            below += _ENTRY
            drawn += stacked(0, below, words)
            below += more_height(words)
        else:
            level = levels[index]
            leader = element(
                "line", class_="grid", x1=across + 6, y1=up, x2=x.end + 8, y2=level - 4
            )
            drawn.append(leader)
            drawn.append(text(x.end + 12, level, point.name))
    if rest := len(points) - len(named):
        below += _ENTRY if narrow else 0.0
        left, last = (0.0, below + 4) if narrow else (x.end + 12, _HEIGHT)
        drawn.append(text(left, last - 4, f"and {rest} more: see the table", class_="soft"))
    height = below + 6 if narrow else _HEIGHT
    return picture(width, height, "".join(drawn), label="Roofline", name=name)


def _levels(wanted: Sequence[float], lowest: float) -> list[float]:
    """Move names apart, from the highest down, and all up again where they would end too low."""
    levels: list[float] = []
    for one in wanted:
        levels.append(max(one, levels[-1] + _NAME) if levels else one)
    for index in reversed(range(len(levels))):
        levels[index] = min(levels[index], lowest)
        lowest = levels[index] - _NAME
    return levels
