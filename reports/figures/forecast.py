"""Draw what more devices are predicted to reach, apart from what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from harness.analysis import numbers
from harness.analysis.scaling.prediction import Forecast
from harness.stats.growth.growth import Prediction
from reports.charts.svg import Scale, coordinate, element, picture, text
from reports.figures.standalone import standalone

_WIDTH, _PANEL = 960.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 150.0, 64.0, 40.0
_LEAST_TOP = 1.05


def drawing(found: Sequence[Forecast]) -> str:
    """Draw a panel per line of scaling, as a file that needs nothing else."""
    panels = "".join(
        element("g", "".join(_panel(one)), transform=f"translate(0 {coordinate(row * _PANEL)})")
        for row, one in enumerate(found)
    )
    label = "Predicted, not measured"
    chart = picture(_WIDTH, _PANEL * len(found), panels, label=label, name="forecast")
    return standalone(chart)


def _panel(one: Forecast) -> list[str]:
    """Draw efficiency over devices: dots and a line where it was measured, a band beyond."""
    told = sorted(one.predictions, key=lambda p: p.devices)
    measured = [(c.devices, one.efficiency(c.devices, c.middle)) for c in one.growth.counts]
    counts = sorted({count for count, _ in measured} | {p.devices for p in told})
    x = Scale(counts[0], counts[-1], _LEFT, _WIDTH - _RIGHT, log=True)
    middles = [one.efficiency(p.devices, p.seconds) for p in told]
    top = max(_LEAST_TOP, *(value for _, value in measured), *middles)
    y = Scale(0.0, top, _PANEL - _BOTTOM, _TOP)
    drawn = [
        text(0, 20, f"{one.line.workload} · {one.line.name}"),
        text(0, 40, f"Efficiency: {one.origin} (dots), predicted (dashed)", class_="soft"),
    ]
    step = 0.25 * ceil(top / 2)
    for share in (step * at for at in range(int(top / step) + 1)):
        level = y(share)
        drawn.append(
            element("line", class_="grid", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=level, y2=level)
        )
        words = numbers.share(share)
        drawn.append(text(_LEFT - 8, level + 4, words, text_anchor="end", class_="soft"))
    drawn += [
        text(x(count), _PANEL - 20, str(count), text_anchor="middle", class_="soft")
        for count in counts
    ]
    drawn.append(text(_WIDTH - _RIGHT + 28, _PANEL - 20, "devices", class_="soft"))
    drawn += _predicted(one, measured[-1], told, x, y)
    known = [(x(count), y(value)) for count, value in measured]
    drawn.append(element("path", class_="curve l1", d=_path(known)))
    drawn += [element("circle", class_="s1", cx=a, cy=b, r=3.5) for a, b in known]
    return drawn


def _predicted(
    one: Forecast,
    last: tuple[int, float],
    told: Sequence[Prediction],
    x: Scale,
    y: Scale,
) -> list[str]:
    more = [p for p in told if p.devices > last[0]]
    if not more:
        return [text(x(last[0]) + 8, y(last[1]) + 4, "nothing predicted", class_="soft")]

    def place(devices: int, seconds: float | None) -> tuple[float, float]:
        assert seconds is not None
        return x(devices), y(min(one.efficiency(devices, seconds), y.high))

    start = (x(last[0]), y(last[1]))
    upper = [place(p.devices, p.low) for p in more]
    lower = [place(p.devices, p.high) for p in reversed(more)]
    middle = [start, *(place(p.devices, p.seconds) for p in more)]
    said = numbers.share(one.efficiency(more[-1].devices, more[-1].seconds))
    return [
        element("path", class_="s2 band", d=_path([start, *upper, *lower]) + "Z"),
        element("path", class_="curve l2 d2", d=_path(middle)),
        text(middle[-1][0] + 8, middle[-1][1] + 4, f"predicted {said}"),
    ]


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
