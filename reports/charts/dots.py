"""Draw every trial of a cell as a dot, all cells of a ranking on one axis of their rates.

Each shape also carries where it lies on an axis relative to its cell's rate, which is logarithmic:
half and twice lie equally far from the middle. A click on the page changes from one to the other.

Rejected trials are crosses; what lies beyond the axis is drawn at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import exp, log

from harness.analysis import numbers
from harness.store.layout import PILOT
from harness.verdicts.results import Estimate, TrialResult
from reports.charts.svg import Scale, element

_LEAST_REACH = 0.005
_WIDE = 4.0
"""From this factor between the ends on, an axis of rates is logarithmic."""
_START, _END = 2.0, 98.0
_NARROWEST = 0.2

Cells = Sequence[tuple[Sequence[TrialResult], Estimate | None]]


@dataclass(frozen=True)
class Axes:
    """Where rates lie in per cent of the width: on one axis for all, and relative to their own."""

    rates: Scale
    reach: float
    """The logarithm of how far the relative axis reaches."""

    def absolute(self, rate: float) -> float:
        """Place a rate."""
        return min(_END, max(_START, self.rates(max(rate, self.rates.low)))) if rate > 0 else _START

    def relative(self, rate: float, center: float) -> float:
        """Place a rate beside that of its cell."""
        share = log(rate / center) / self.reach if center and rate > 0 else 0.0
        return max(1.0, min(99.0, 50 + 48 * share))


def axes_of(cells: Cells) -> Axes:
    """Reach to the farthest trial that counts; where none does, to the farthest at all."""
    counted = [t.rate for trials, _ in cells for t in trials if t.counted and t.rate]
    known = counted or [t.rate for trials, _ in cells for t in trials if t.rate] or [1.0]
    low, high = min(known), max(known)
    beyond = (high - low or high) * 0.03
    is_log = high > _WIDE * low
    ends = (low / 1.05, high * 1.05) if is_log else (low - beyond, high + beyond)
    return Axes(Scale(*ends, _START, _END, log=is_log), _reach(cells))


def _reach(cells: Cells) -> float:
    farthest = _LEAST_REACH
    for trials, rate in cells:
        if rate is None or not rate.value:
            continue
        for trial in trials:
            if trial.counted and trial.rate:
                farthest = max(farthest, abs(log(trial.rate / rate.value)))
    return farthest * 1.1


def factor_of(axes: Axes) -> float:
    """Give how far the relative axis reaches, as a factor."""
    return exp(axes.reach)


def name_of(trial: TrialResult) -> str:
    """Call a trial by its block, or a pilot."""
    if trial.block == PILOT:
        return "pilot"
    return f"block {trial.block}" + (f", attempt {trial.attempt}" if trial.attempt > 1 else "")


def _title(trial: TrialResult, why: str) -> str:
    verdict = trial.verdict or trial.outcome
    told = [verdict] if verdict != "valid" else []
    said = [*told, *([why] if why else [])] or ([] if trial.counted else ["not counted"])
    return f"{name_of(trial)}: {', '.join((numbers.number(trial.rate), *said))}"


def dots(
    trials: Sequence[tuple[TrialResult, str]], rate: Estimate | None, *, axes: Axes, colour: int
) -> str:
    """Draw trials and their rate, its interval as a band; the page's style sizes dots."""
    known = [trial.rate for trial, _ in trials if trial.rate is not None]
    center = rate.value if rate else (sorted(known)[len(known) // 2] if known else 0.0)
    drawn = [element("line", class_="grid", x1="0", x2="100%", y1=12.0, y2=12.0)]
    if rate and rate.interval:
        ends = rate.interval.low, rate.interval.high
        left, wide = _span([axes.absolute(end) for end in ends])
        apart = _span([axes.relative(end, center) for end in ends])
        drawn.append(
            f'<rect class="s{colour} band" x="{left}" width="{wide}" y="4" height="16"'
            f' data-other="{" ".join(apart)}"/>'
        )
    middle = f"{axes.absolute(center):.1f}%"
    drawn.append(
        element("line", class_="axis", x1=middle, x2=middle, y1=2.0, y2=22.0, data_other="50% 50%")
    )
    counted, crossed = [], []
    for trial, why in trials:
        if trial.rate is None:
            continue
        here = f"{axes.absolute(trial.rate):.1f}%"
        other = f"{axes.relative(trial.rate, center):.1f}%"
        title = f"<title>{escape(_title(trial, why))}</title>"
        if trial.counted:
            shape = f'<circle cx="{here}"'
            counted.append(f'{shape} data-other="{other}">{title}</circle>')
        else:
            shape = f'<text class="cross" x="{here}" y="17" data-other="{other}"'
            crossed.append(f"{shape}>×{title}</text>")
    drawn += (element("g", "".join(counted), class_=f"s{colour}"), *crossed)
    return f'<svg class="chart bar" aria-hidden="true">{"".join(drawn)}</svg>'


def _span(ends: Sequence[float]) -> tuple[str, str]:
    """Say where a band begins and how wide it is; one can always see it."""
    left, right = ends
    return f"{left:.1f}%", f"{max(_NARROWEST, right - left):.1f}%"
