"""Draw one bar of a ranking with its interval, as wide as the page allows.

Horizontal places are per cent of the width, so that bars stretch with the page and lines do not.
"""

from __future__ import annotations

from harness.verdicts.results import Estimate
from reports.charts.svg import element

_HEIGHT = 22.0
"""As the page's style has it."""


def _percent(value: float, top: float) -> str:
    return f"{max(0.0, min(100.0, 100.0 * value / top)):.2f}%"


def bar(rate: Estimate, *, top: float, colour: int, faint: bool = False) -> str:
    """Draw a rate as a bar from zero with a whisker over its interval."""
    drawn = [
        element(
            "rect",
            class_=f"s{colour}{' faint' if faint else ''}",
            x="0",
            y=4.0,
            width=_percent(rate.value, top),
            height=_HEIGHT - 8,
        )
    ]
    if rate.interval is not None:
        low, high = _percent(rate.interval.low, top), _percent(rate.interval.high, top)
        middle = _HEIGHT / 2
        lines = (
            element("line", x1=low, x2=high, y1=middle, y2=middle),
            element("line", x1=low, x2=low, y1=middle - 4, y2=middle + 4),
            element("line", x1=high, x2=high, y1=middle - 4, y2=middle + 4),
        )
        drawn += [
            element("line", class_="halo", x1=low, x2=high, y1=middle, y2=middle),
            element("g", "".join(lines), class_="whisker"),
        ]
    return f'<svg class="chart bar" aria-hidden="true">{"".join(drawn)}</svg>'


def top_of(rates: list[Estimate]) -> float:
    """Leave room for the longest whisker."""
    return max((r.interval.high if r.interval else r.value for r in rates), default=1.0) * 1.02
