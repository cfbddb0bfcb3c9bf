"""Measure what exchanging gradients costs: a step's time less that of the same step without.

A cell with ``communicate = false`` is the same cell whose ranks keep their gradients. What hides
behind computing costs nothing and does not show, so the difference is the exposed communication.
It is taken block by block, between trials that ran close together. What either waits for input is
counted apart, and in no difference.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.analysis.ranking import Ranking
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.stats.estimate import median, median_interval
from harness.verdicts.results import CellResult, Interval


@dataclass(frozen=True)
class StepSplit:
    """The parts of the time of one cell's step."""

    name: str
    parts_s: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class ExchangePair:
    """One cell, and the same without exchange."""

    name: str
    cell: CellResult
    whole_s: float
    apart_s: float
    waited_s: float | None
    """For input, of the step with exchange; None where nothing is read."""
    exposed_s: float
    interval: Interval | None
    blocks: int


def exchange_pairs(results: Results) -> list[ExchangePair]:
    """Find the pairs of cells that differ in whether they exchange gradients."""
    found = []
    for ranking in results.rankings:
        apart = {
            _alike(cell): cell
            for cell in ranking.set_aside
            if cell.factors.get("communicate") is False and not cell.refusal
        }
        for cell in ranking.cells:
            other = apart.get(_alike(cell))
            difference = _difference(ranking, cell, other) if other else None
            if difference is not None:
                found.append(difference)
    return found


def _alike(cell: CellResult) -> tuple[object, ...]:
    others = {k: repr(v) for k, v in cell.factors.items() if k != "communicate"}
    return (cell.run, cell.framework, cell.strategy, tuple(sorted(others.items())))


def _difference(ranking: Ranking, cell: CellResult, other: CellResult) -> ExchangePair | None:
    work = float(cell.work_per_step)
    whole, apart = (_steps(one, work) for one in (cell, other))
    both = sorted(whole.keys() & apart.keys())
    if not both:
        return None
    differences = [whole[block].busy_s - apart[block].busy_s for block in both]
    waits = [one.waited_s for block in both if (one := whole[block]).waited_s is not None]
    interval = median_interval(differences)
    meaning = interval.meaning.replace("trials", "blocks' differences") if interval else ""
    return ExchangePair(
        name=ranking.name(cell),
        cell=cell,
        whole_s=median([whole[block].step_s for block in both]),
        apart_s=median([apart[block].step_s for block in both]),
        waited_s=median(waits) if waits else None,
        exposed_s=median(differences),
        interval=Interval(interval.low, interval.high, interval.level, meaning)
        if interval
        else None,
        blocks=len(both),
    )


@dataclass(frozen=True)
class _Step:
    """A trial's step, and what of it was waiting for input."""

    step_s: float
    waited_s: float | None

    @property
    def busy_s(self) -> float:
        return self.step_s - (self.waited_s or 0.0)


def _steps(cell: CellResult, work: float) -> dict[int, _Step]:
    found = {}
    for trial in cell.trials:
        if trial.counted and trial.rate:
            step_s = work / trial.rate
            share = trial.input.wait_share if trial.input else None
            found[trial.block] = _Step(step_s, None if share is None else share * step_s)
    return found


def splits(results: Results) -> tuple[StepSplit, ...]:
    """Give the parts of each such cell's step, which add up to it."""
    return tuple(
        StepSplit(f"{one.cell.workload} {one.name}", _parts(one)) for one in exchange_pairs(results)
    )


def _parts(one: ExchangePair) -> tuple[tuple[str, float], ...]:
    """Part the median step; medians of its parts, taken apart, may be more than it holds."""
    exchange = min(max(0.0, one.exposed_s), one.whole_s)
    waited = min(one.waited_s or 0.0, one.whole_s - exchange)
    parts = [("computing", one.whole_s - exchange - waited)]
    parts.append(("exposed communication", exchange))
    if one.waited_s is not None:
        parts.append(("waiting for input", waited))
    return tuple(parts)


def _by_hooks(cell: CellResult) -> tuple[float | None, float | None]:
    """Give the time that the probe's hooks measured, in ms and as a share of its steps."""
    hooks = cell.ran.facts.get("exchange_hooks") or {}
    exposed_s, step_s = hooks.get("exposed_s"), hooks.get("step_s")
    if exposed_s is None or not step_s:
        return None, None
    return exposed_s * 1e3, exposed_s / step_s


def _mark(one: ExchangePair) -> str | None:
    """Explain a negative cost; None where it is not negative."""
    if one.exposed_s >= 0:
        return None
    if one.interval is not None and one.interval.high < 0:
        return "below nothing: the two do not compute alike otherwise"
    return "below nothing: noise"


def communication(results: Results) -> Table:
    """Lay out a step with and without exchange, and the difference."""
    columns = (
        Column("workload", "workload", "name"),
        Column("cell", "cell", "name"),
        Column("devices", "devices", "count"),
        Column("whole_s", "step", "seconds"),
        Column("apart_s", "without exchange", "seconds"),
        Column("waited_s", "waiting for input", "seconds"),
        Column("exposed_ms", "exposed, ms", "number"),
        Column("exposed_interval", "interval", "interval"),
        Column("share", "of the step", "share"),
        Column("blocks", "blocks", "count"),
        Column("hooked_ms", "by hooks, ms", "number"),
        Column("hooked_share", "of the probe's step", "share"),
        Column("mark", "mark"),
    )
    rows = []
    for one in exchange_pairs(results):
        between = one.interval
        if between is not None:
            between = Interval(
                between.low * 1e3, between.high * 1e3, between.level, between.meaning
            )
        rows.append(
            (
                one.cell.workload,
                one.name,
                one.cell.scale.devices,
                one.whole_s,
                one.apart_s,
                one.waited_s,
                one.exposed_s * 1e3,
                between,
                one.exposed_s / one.whole_s,
                one.blocks,
                *_by_hooks(one.cell),
                _mark(one),
            )
        )
    return Table("communication", "Exposed communication", columns, tuple(rows))
