"""Say how far cells scale: how efficient more devices are, and where that falls below enough."""

from __future__ import annotations

from collections.abc import Iterator

from harness import units
from harness.analysis import numbers
from harness.analysis.results import Results
from harness.analysis.scaling.node_hours import per_epoch, per_million
from harness.analysis.scaling.scaling import (
    ScalingLine,
    ScalingPoint,
    efficiency_interval,
    scaling_lines,
)

_FEW_HOURS = 0.01
"""Below, the cost of work is said in seconds."""
ENOUGH = 0.80
"""What clusters commonly ask of a job before they give it more nodes."""


def in_words(line: ScalingLine) -> str:
    """Answer how far a line scales, with the interval and what it costs."""
    return " ".join(filter(None, (how_far(line), _cost(line))))


def how_far(line: ScalingLine) -> str:
    """Say what the most devices reach, and where they are no longer worth it."""
    last = line.points[-1]
    reached = f"{_reached(last)} efficient at {_counted(line, last.devices)}"
    return f"{reached} against {_counted(line, line.baseline)}. {_where_lost(line)}"


def enough_up_to(line: ScalingLine) -> int:
    """Give the most devices that are surely efficient enough, as are all fewer."""
    most = line.baseline
    for point in line.points[1:]:
        interval = efficiency_interval(point.reached)
        if (interval.low if interval else point.reached.efficiency) < ENOUGH:
            break
        most = point.devices
    return most


def _where_lost(line: ScalingLine) -> str:
    """Name the first count below enough; where its interval says more than one thing, say so."""
    for point in line.points[1:]:
        interval = efficiency_interval(point.reached)
        low = interval.low if interval else point.reached.efficiency
        high = interval.high if interval else point.reached.efficiency
        counted = _counted(line, point.devices)
        if high < ENOUGH:
            is_last = point is line.points[-1]
            return f"It falls below 80 % at {counted}{'' if is_last else f': {_reached(point)}'}."
        if low < ENOUGH:
            return f"Whether it is below 80 % at {counted} cannot be told: {_reached(point)}."
    return "It stays above 80 % up to there, the most that was measured."


def _reached(point: ScalingPoint) -> str:
    reached, interval = _percent(point.reached.efficiency), efficiency_interval(point.reached)
    if interval is None:
        return f"{reached} % (too few blocks for an interval)"
    return f"{reached} % (interval {_percent(interval.low)}–{_percent(interval.high)} %)"


def _percent(share: float) -> str:
    return numbers.fixed(100 * share, 1)


def _counted(line: ScalingLine, count: int) -> str:
    return units.counted(count, line.counts)


def _cost(line: ScalingLine) -> str:
    """Compare what the fewest and the most devices take of the machine for the same work."""
    million = f"A million {line.unit.removesuffix('/s')} take"
    for work, cost in (("An epoch takes", per_epoch), (million, per_million)):
        least, most = cost(line.points[0].cell), cost(line.points[-1].cell)
        if least is not None and most is not None:
            unit, times = ("seconds", 3600) if max(least, most) < _FEW_HOURS else ("hours", 1)
            first, last = (numbers.number(one * times) for one in (least, most))
            at = f"{line.points[-1].devices}, {first} at {_counted(line, line.baseline)}"
            return f"{work} {last} node-{unit} at {at}."
    return ""


def too_efficient(results: Results) -> Iterator[str]:
    """Warn of efficiencies that are surely above what noise explains."""
    for line in scaling_lines(results):
        for point in line.points[1:]:
            if point.reached.is_impossible:
                yield (
                    f"{line.workload}, {line.name}: {_reached(point)} efficient at "
                    f"{_counted(line, point.devices)}. More than 100 % cannot be if all do the "
                    "same work: the baseline is too slow, or something else differs."
                )
