"""Draw every trial of a cell as a dot at its ratio to the cell's rate.

The axis is logarithmic: half and twice lie equally far from the middle.

Rejected trials are crosses; what lies beyond the axis is drawn at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import log

from harness.analysis import numbers
from harness.verdicts.results import Estimate, TrialResult
from reports.charts.svg import element

_HEIGHT = 24
_LEAST_REACH = 0.005


def _title(trial: TrialResult, why: str) -> str:
    attempt = f", attempt {trial.attempt}" if trial.attempt > 1 else ""
    said = f"block {trial.block}{attempt}: {numbers.number(trial.rate)}"
    return f"{said}, {trial.verdict or trial.outcome}{f' ({why})' if why else ''}"


def _at(value: float, center: float, reach: float) -> float:
    share = log(value / center) / reach if center and value > 0 else 0.0
    return max(1.0, min(99.0, 50 + 48 * share))


def dots(
    trials: Sequence[tuple[TrialResult, str]], rate: Estimate | None, *, reach: float, colour: int
) -> str:
    """Draw trials within a factor exp(reach) of the rate, their interval as a band."""
    known = [trial.rate for trial, _ in trials if trial.rate is not None]
    center = rate.value if rate else (sorted(known)[len(known) // 2] if known else 0.0)
    drawn = [element("line", class_="grid", x1="0", x2="100%", y1=12.0, y2=12.0)]
    if rate and rate.interval:
        left, right = _at(rate.interval.low, center, reach), _at(rate.interval.high, center, reach)
        drawn.append(
            f'<rect class="s{colour} band" x="{left:.1f}%" y="4" '
            f'width="{max(0.2, right - left):.1f}%" height="16"/>'
        )
    drawn.append(element("line", class_="grid", x1="50%", x2="50%", y1=2.0, y2=22.0))
    for trial, why in trials:
        if trial.rate is None:
            continue
        place = f"{_at(trial.rate, center, reach):.1f}%"
        title = f"<title>{escape(_title(trial, why))}</title>"
        if trial.counted:
            drawn.append(f'<circle class="s{colour}" cx="{place}" cy="12" r="4">{title}</circle>')
        else:
            drawn.append(f'<text class="cross" x="{place}" y="17">×{title}</text>')
    return f'<svg class="chart bar" height="{_HEIGHT}" aria-hidden="true">{"".join(drawn)}</svg>'


def reach_of(cells: Sequence[tuple[Sequence[TrialResult], Estimate | None]]) -> float:
    """Choose the logarithm of how far the axis reaches: to the farthest trial that counts."""
    farthest = _LEAST_REACH
    for trials, rate in cells:
        if rate is None or not rate.value:
            continue
        for trial in trials:
            if trial.counted and trial.rate:
                farthest = max(farthest, abs(log(trial.rate / rate.value)))
    return farthest * 1.1
