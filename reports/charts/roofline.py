"""Draw cells below the machine's ceilings: operations per second over intensity."""

from __future__ import annotations

from collections.abc import Sequence

from harness.analysis import numbers
from harness.analysis.context.roofline import RoofCeiling, RoofPoint
from reports.charts.svg import Scale, element, free_level, log_ticks, picture, text

_WIDTH, _HEIGHT = 960.0, 420.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 24.0, 20.0, 44.0
_NARROW, _BESIDE, _ENTRY = 354.0, 8.0, 18.0


def roofline(
    ceilings: Sequence[RoofCeiling], points: Sequence[RoofPoint], *, name: str, narrow: bool = False
) -> str:
    """Draw bandwidths as slopes, peaks as levels, each named measured or declared.

    A narrow chart names its cells below it instead of beside their dots.
    """
    width, beside = (_NARROW, _BESIDE) if narrow else (_WIDTH, _RIGHT)
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
    levels: list[float] = []
    for ceiling in slopes:
        assert ceiling.bytes_per_s is not None
        left = max(x.low, y.low / ceiling.bytes_per_s)
        right = min(x.high, peak / ceiling.bytes_per_s)
        low, high = left * ceiling.bytes_per_s, right * ceiling.bytes_per_s
        drawn.append(element("line", class_="axis", x1=x(left), x2=x(right), y1=y(low), y2=y(high)))
        drawn.append(text(x(left) + 24, y(low) + 8, f"{ceiling.name} ({ceiling.how})"))
        levels.append(y(low) + 8)
    for index, point in enumerate(points):
        across, up = x(point.intensity), y(point.flops)
        kind, below = f"s{index % 8 + 1}", _HEIGHT + (index + 1) * _ENTRY
        drawn.append(element("circle", class_=kind, cx=across, cy=up, r=5.0))
        if narrow:
            drawn.append(element("circle", class_=kind, cx=5.0, cy=below - 4, r=5.0))
            drawn.append(text(16, below, point.name))
        else:
            is_right = across > (x.start + x.end) / 2
            aside, anchor = (across - 9, "end") if is_right else (across + 9, None)
            level = free_level(up + 4, levels, _HEIGHT - _BOTTOM - 4)
            drawn.append(text(aside, level, point.name, text_anchor=anchor))
    height = _HEIGHT + len(points) * _ENTRY + 6 if narrow else _HEIGHT
    return picture(width, height, "".join(drawn), label="Roofline", name=name)
