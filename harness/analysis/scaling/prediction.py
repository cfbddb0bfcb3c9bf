"""Predict the rate of more devices than were measured; every prediction is marked as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.analysis import numbers
from harness.analysis.results import Results
from harness.analysis.scaling.network_cost import gradient_bytes, sweep_like
from harness.analysis.scaling.scaling import (
    ScalingLine,
    batch_meaning,
    scaling_lines,
)
from harness.analysis.tables import Column, Table, shown_row
from harness.stats.growth.beyond_measured import FACTOR
from harness.stats.growth.growth import (
    ALPHA,
    Growth,
    LargestCountCheck,
    MeasuredCount,
    NetworkFit,
    Prediction,
    check,
    grow,
)
from harness.units import listed
from harness.verdicts.results import CellResult, Interval

_FAR = 8
"""So many times the largest count measured is far."""


@dataclass(frozen=True)
class Forecast:
    """A line of scaling, what was fitted to it, and what that says of more devices."""

    line: ScalingLine
    growth: Growth
    check: LargestCountCheck | None
    """What the smaller counts would have said of the largest one."""
    predictions: tuple[Prediction, ...]
    warnings: tuple[str, ...]
    work: float
    """Units of work in a step: of each device, or of all where that is what stays the same."""

    @property
    def origin(self) -> str:
        """Say where what it is fitted to comes from: measured, simulated …"""
        return _origin(self.line)

    def rate(self, devices: int, seconds: float) -> float:
        """Give the rate of so many devices at so many seconds a step."""
        return self.work * (1 if self.growth.strong else devices) / seconds

    def efficiency(self, devices: int, seconds: float) -> float:
        """Give the share of what so many devices could reach at best."""
        first = self.growth.counts[0]
        base = self.rate(first.devices, first.middle) / first.devices
        return self.rate(devices, seconds) / devices / base


def forecasts(results: Results, nodes: Sequence[int]) -> list[Forecast]:
    """Predict every line of scaling for so many nodes."""
    found = []
    for line in scaling_lines(results):
        cell = line.points[-1].cell
        scale, strong = cell.scale, cell.scale.is_strong
        work = cell.work_per_step / (1 if strong else scale.devices)
        counts = [_count(point.cell, work, strong=strong) for point in line.points]
        network = _network(results, cell)
        size = float(gradient_bytes(cell) or 0)
        fitted = grow(counts, strong=strong, network=network, size=size)
        if fitted is None:
            continue
        each = max(point.cell.scale.devices_per_node for point in line.points)
        tested = check(counts, strong=strong, network=network, size=size)
        wanted = sorted({each * count for count in nodes})
        said = [fitted.predict(count) for count in wanted]
        predictions = tuple(one for one in said if one.low is not None)
        refused = [one.devices for one in said if one.low is None]
        warnings = tuple(_warnings(line, fitted, tested, wanted, refused)) if wanted else ()
        found.append(Forecast(line, fitted, tested, predictions, warnings, work))
    return found


def _origin(line: ScalingLine) -> str:
    trials = [trial for point in line.points for trial in point.cell.trials if trial.counted]
    return ", ".join(sorted({trial.origin for trial in trials}))


def _count(cell: CellResult, work: float, *, strong: bool) -> MeasuredCount:
    count = cell.scale.devices
    rates = [t.rate for t in cell.trials if t.counted and t.rate]
    return MeasuredCount(count, tuple(work * (1 if strong else count) / rate for rate in rates))


def _network(results: Results, like: CellResult) -> NetworkFit | None:
    sweep = sweep_like(results, like)
    return NetworkFit(sweep.alpha_s, sweep.beta_s) if sweep else None


def _warnings(
    line: ScalingLine,
    fitted: Growth,
    tested: LargestCountCheck | None,
    wanted: Sequence[int],
    refused: Sequence[int],
) -> Iterable[str]:
    largest = line.points[-1].devices
    across = {point.cell.scale.nodes for point in line.points}
    if max(across) == 1 and max(wanted) > largest:
        yield "Nothing was measured across nodes: the network is not in this prediction."
    elif max(across) > 1 and len({point.cell.scale.devices_per_node for point in line.points}) > 1:
        yield "Counts within a node and across nodes stand on one curve."
    if (origin := _origin(line)) != "measured":
        yield f"What this is fitted to was not measured either: it is {origin}."
    if tested is None:
        yield "Two counts leave no interval, so nothing is predicted from them: measure a third."
    elif tested.holds is None:
        yield "The smaller counts say nothing of the largest one, so nothing is checked."
    elif not tested.holds:
        yield (
            "Do not believe this: the smaller counts predicted "
            f"{_time(tested.predicted)} for {largest} devices, measured were "
            f"{numbers.seconds(tested.measured)}."
        )
    if tested is not None and max(wanted) > largest:
        yield _assumed(largest, is_swept=fitted.exchange is not None)
    if tested is not None and refused:
        yield (
            f"Nothing is predicted of {listed([str(one) for one in refused])} devices: the longest "
            f"that a step may take is over {FACTOR:.0f} times the shortest. Measure more devices"
            + ("." if fitted.exchange is not None else ", or all-reduces in the same run.")
        )
    if max(wanted) > _FAR * largest:
        yield f"{max(wanted)} devices are {max(wanted) // largest} times the most measured."


def _assumed(largest: int, *, is_swept: bool) -> str:
    """Say what the interval beyond the measured counts stands on."""
    if is_swept:
        return (
            f"Beyond {largest} devices one whole exchange may come to light that was hidden, on a "
            "network half as fast as that of the run's all-reduces; nothing else is allowed for."
        )
    return (
        f"No count up to {largest} shows how much of the exchange is hidden and for how long, so "
        f"the interval reaches down to the rate of {largest} devices. All-reduces in the same run "
        "say what can come."
    )


def _interval(low: float | None, high: float | None) -> Interval | None:
    if low is None or high is None:
        return None
    return Interval(min(low, high), max(low, high), 1 - ALPHA, "of a prediction")


def _time(of: Prediction) -> str:
    time = numbers.seconds(of.seconds)
    if of.low is None or of.high is None:
        return time
    return f"{time} [{numbers.seconds(of.low)}, {numbers.seconds(of.high)}]"


def table(found: Sequence[Forecast]) -> Table:
    """Lay out what was measured, what the smaller counts said of it, and what is predicted."""
    columns = (
        Column("workload", "workload", "name"),
        Column("cell", "cell", "name"),
        Column("batch", "batch"),
        Column("devices", "devices", "count"),
        Column("what", "what"),
        Column("step_s", "step", "seconds"),
        Column("rate", "rate", "number"),
        Column("rate_interval", "interval", "interval"),
        Column("unit", "unit"),
        Column("efficiency", "efficiency", "share"),
        Column("efficiency_interval", "its interval", "interval"),
        Column("communication", "communication", "share"),
    )
    rows = []
    for one in found:
        start = (one.line.workload, one.line.name, batch_meaning(one.line.points[-1].cell.scale))
        points = [
            (one.origin, Prediction(c.devices, c.middle, None, None, 0.0))
            for c in one.growth.counts
        ]
        points += [("checked", one.check.predicted)] if one.check else []
        points += [("predicted", prediction) for prediction in one.predictions]
        for what, prediction in points:
            count, seconds = prediction.devices, prediction.seconds
            ends = [
                None if end is None else (one.rate(count, end), one.efficiency(count, end))
                for end in (prediction.high, prediction.low)
            ]
            low, high = ((end or (None, None)) for end in ends)
            rows.append(
                (
                    *start,
                    count,
                    what,
                    seconds,
                    one.rate(count, seconds),
                    _interval(low[0], high[0]),
                    one.line.unit,
                    one.efficiency(count, seconds),
                    _interval(low[1], high[1]),
                    None if what == one.origin else prediction.communication,
                )
            )
    return Table("prediction", "Predicted, not measured", columns, tuple(rows))


def render(found: Sequence[Forecast]) -> str:
    """Print the predictions in the terminal."""
    lines = ["Predicted, not measured."]
    shown = (3, 4, 5, 6, 7, 9, 10, 11)
    for one in found:
        own = table([one])
        meaning = batch_meaning(one.line.points[-1].cell.scale)
        lines += ["", f"{one.line.workload} · {one.line.name} · {meaning}"]
        heads = [own.columns[i].title for i in shown]
        texts = [[shown_row(own, row)[i] for i in shown] for row in own.rows]
        widths = [max(map(len, column)) for column in zip(heads, *texts, strict=True)]
        lines += [
            "  " + "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))
            for row in (heads, *texts)
        ]
        lines.append(f"  Rates are in {one.line.unit}. Fitted: {one.growth.form}.")
        if (serial := one.growth.serial) is not None:
            lines.append(
                f"  Amdahl's share, which more devices do not divide: {serial * 100:.2g} %."
            )
        if one.check and one.check.holds:
            lines.append(
                "  Checked: the smaller counts predict the largest one within its interval; "
                f"its ends are a factor of {one.check.width:.1f} apart, and less does not show."
            )
        lines += [f"  ! {warning}" for warning in one.warnings]
    return "\n".join(lines) + "\n"
