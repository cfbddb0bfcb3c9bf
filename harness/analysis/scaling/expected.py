"""Compare measured efficiency with that expected from one device and the bare network.

A step on several nodes takes at most what it takes on one device and, after it, one all-reduce of
all gradients as fast as the run's own all-reduces were: if nothing hides behind computing. Nothing
is fitted to the steps themselves. Where there are counts enough, the smaller ones also predict the
largest, as ``bakeoff predict`` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.analysis.results import Results
from harness.analysis.scaling.network_cost import MessageSweep, gradient_bytes, sweep_like
from harness.analysis.scaling.scaling import (
    ScalingLine,
    ScalingPoint,
    efficiency_interval,
    mark,
    scaling_lines,
)
from harness.analysis.tables import Column, Table
from harness.verdicts.results import Interval

if TYPE_CHECKING:
    from harness.analysis.scaling.prediction import Forecast


def expected(results: Results) -> Table:
    """Lay out every point of scaling over nodes whose expectation is known."""
    columns = (
        Column("workload", "workload", "name"),
        Column("cell", "cell", "name"),
        Column("devices", "devices", "count"),
        Column("efficiency", "measured efficiency", "share"),
        Column("efficiency_interval", "its interval", "interval"),
        Column("least", "expected, if nothing hides", "share"),
        Column("all_reduce_ms", "its all-reduce, ms", "number"),
        Column("network", "network known from"),
        Column("predicted", "predicted from fewer devices", "share"),
        Column("predicted_interval", "its interval", "interval"),
        Column("mark", "mark"),
    )
    rows = tuple(row for line in scaling_lines(results) for row in _rows(results, line))
    return Table("expected", "Predicted and measured efficiency", columns, rows)


def _rows(results: Results, line: ScalingLine) -> Iterator[tuple[object, ...]]:
    checked = _checked(results, line)
    for point in line.points[1:]:
        is_apart = point.cell.scale.nodes > 1
        sweep = sweep_like(results, point.cell) if is_apart else None
        forecast = checked if checked and point is line.points[-1] else None
        cost_s = _exchange_s(point, sweep) if sweep else None
        if cost_s is None and forecast is None:
            continue
        yield (
            line.workload,
            line.name,
            point.devices,
            point.reached.efficiency,
            efficiency_interval(point.reached),
            None if cost_s is None else _least(line, point, cost_s),
            None if cost_s is None else cost_s * 1e3,
            sweep.name if sweep and cost_s is not None else None,
            *(_predicted(forecast) if forecast else (None, None)),
            mark(line, point),
        )


def _exchange_s(point: ScalingPoint, sweep: MessageSweep) -> float | None:
    """Give the time of one all-reduce of a cell's gradients."""
    size = gradient_bytes(point.cell)
    return sweep.seconds(point.devices, size) if size else None


def _least(line: ScalingLine, point: ScalingPoint, cost_s: float) -> float | None:
    """Give the efficiency of a step that computes first and then exchanges everything."""
    alone = line.points[0]
    if alone.devices != 1 or alone.cell.rate is None:
        return None
    step_s = point.cell.work_per_step / point.cell.scale.devices / alone.cell.rate.value
    return step_s / (step_s + cost_s)


def _checked(results: Results, line: ScalingLine) -> Forecast | None:
    """Predict the largest count from the others, where there are three."""
    if len(line.points) < 3:
        return None
    from harness.analysis.scaling.prediction import forecasts  # brings numpy

    for one in forecasts(results, ()):
        if one.line == line and one.check is not None:
            return one
    return None


def _predicted(forecast: Forecast) -> tuple[float | None, Interval | None]:
    assert forecast.check is not None
    predicted = forecast.check.predicted
    value = forecast.efficiency(predicted.devices, predicted.seconds)
    if predicted.low is None or predicted.high is None:
        return value, None
    low, high = (
        forecast.efficiency(predicted.devices, end) for end in (predicted.high, predicted.low)
    )
    return value, Interval(low, high, 0.95, "of a prediction")
