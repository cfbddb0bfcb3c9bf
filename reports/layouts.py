"""This file lays results out as tables: once, for the page and all exports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.errors import UsageError, nearest
from harness.store.results import CellResult, Estimate, Interval, Results, TrialResult
from reports import numbers
from reports.answer import trial_list, work_per_joule
from reports.ranking import Ranking, factor_value, machine_name, rankings
from reports.scaling import scaling
from reports.tables import Column, Table


def _parts(estimate: Estimate | None) -> tuple[float | None, Interval | None, int]:
    return (estimate.value, estimate.interval, estimate.n) if estimate else (None, None, 0)


def worst_verdict(cell: CellResult) -> str | None:
    """Name the worst verdict among the trials that count; what was rejected is told apart."""
    verdicts = [t.verdict for t in cell.trials if t.counted and t.verdict]
    if not verdicts:
        return next((t.outcome for t in cell.trials if t.outcome != "ok"), None)
    doubted = sorted({v for v in verdicts if v != "valid"})
    return ", ".join(doubted) or "valid"


def _middle(cell: CellResult, pick: Callable[[TrialResult], float | None]) -> float | None:
    """Take the median over counted trials of something that needs no interval."""
    found = sorted(v for t in cell.trials if t.counted and (v := pick(t)) is not None)
    if not found:
        return None
    half = len(found) // 2
    return found[half] if len(found) % 2 else (found[half - 1] + found[half]) / 2


def _peak(cell: CellResult, pick: Callable[[TrialResult], int | None]) -> int | None:
    return max((v for t in cell.trials if t.counted and (v := pick(t)) is not None), default=None)


def _place(cell: CellResult) -> str:
    return f"{cell.run}/cells/{cell.key}"


_AFTER_FACTORS = (
    Column("rate", "rate", "number"),
    Column("rate_interval", "interval", "interval"),
    Column("unit", "unit"),
    Column("trials", "n", "count"),
    Column("ratio", "× reference", "ratio"),
    Column("ratio_interval", "interval of ×", "interval"),
    Column("answer", "answer"),
    Column("p50_s", "step p50", "seconds"),
    Column("p95_s", "step p95", "seconds"),
    Column("p99_s", "step p99", "seconds"),
    Column("steps_per_window", "steps per window", "count"),
    Column("first_step_s", "first step", "seconds"),
    Column("epoch_s", "time per epoch", "seconds"),
    Column("gpu", "GPU busy", "share"),
    Column("cpu", "CPU busy", "share"),
    Column("data_wait", "data wait", "share"),
    Column("peak_rss_bytes", "memory", "bytes"),
    Column("peak_device_bytes", "device memory", "bytes"),
    Column("power_w", "power, W", "number"),
    Column("work_per_joule", "work per joule", "number"),
    Column("verdict", "verdict"),
    Column("gate", "equivalence"),
    Column("directory", "raw data", "path"),
)


def _cell_row(cell: CellResult, machine: str, factors: Sequence[str]) -> tuple[Any, ...]:
    value, interval, n = _parts(cell.rate)
    comparison = cell.comparison
    return (
        cell.workload,
        cell.framework,
        machine,
        *(factor_value(cell, name) for name in factors),
        value,
        interval,
        cell.rate.unit if cell.rate else cell.unit,
        n,
        comparison.ratio if comparison else None,
        comparison.interval if comparison else None,
        comparison.answer if comparison else None,
        _middle(cell, lambda t: t.p50_s),
        _middle(cell, lambda t: t.p95_s),
        _middle(cell, lambda t: t.p99_s),
        _middle(cell, lambda t: t.steps_per_window),
        _middle(cell, lambda t: t.first_step_s),
        cell.epoch_s.value if cell.epoch_s else None,
        cell.utilisation.get("gpu"),
        cell.utilisation.get("cpu"),
        cell.utilisation.get("data_wait"),
        _peak(cell, lambda t: t.peak_rss_bytes),
        _peak(cell, lambda t: t.peak_device_bytes),
        cell.utilisation.get("power_w"),
        work_per_joule(cell),
        worst_verdict(cell),
        cell.gate.state,
        _place(cell),
    )


def factor_names(results: Results) -> list[str]:
    """List the factors worth a column: those that vary and have no column already."""
    return [name for name in results.varied if name not in ("workload", "framework")]


def cells(results: Results) -> Table:
    """Lay out everything known about each cell."""
    factors = factor_names(results)
    columns = (
        Column("workload", "workload", "name"),
        Column("framework", "framework", "name"),
        Column("machine", "machine", "name"),
        *(Column(f"factor_{name}", name.replace("_", " "), "name") for name in factors),
        *_AFTER_FACTORS,
    )
    ranked = rankings(results)
    rows = [
        _cell_row(cell, ranking.machine(cell), factors)
        for ranking in ranked
        for cell in (*ranking.cells, *ranking.set_aside, *ranking.without)
    ]
    return Table("cells", "Every cell", columns, tuple(rows))


def _ranking_rows(ranking: Ranking) -> list[tuple[Any, ...]]:
    rows = []
    for place, cell in enumerate(ranking.cells, 1):
        value, interval, n = _parts(cell.rate)
        comparison = cell.comparison
        rows.append(
            (
                ranking.workload,
                place,
                ranking.name(cell),
                ranking.machine(cell),
                value,
                interval,
                ranking.unit,
                n,
                comparison.ratio if comparison else None,
                comparison.interval if comparison else None,
                comparison.answer if comparison else None,
                cell.gate.state,
            )
        )
    return rows


def ranking(results: Results) -> Table:
    """Lay out the order per workload."""
    columns = (
        Column("workload", "workload", "name"),
        Column("place", "place", "count"),
        Column("cell", "cell", "name"),
        Column("machine", "machine", "name"),
        *_AFTER_FACTORS[:7],
        Column("gate", "equivalence"),
    )
    rows = [row for ranked in rankings(results) for row in _ranking_rows(ranked)]
    return Table("ranking", "Ranking", columns, tuple(rows))


def trials(results: Results) -> Table:
    """Lay out every trial, rejected ones with why."""
    labels = {
        (cell.run, cell.key): (ranked.workload, ranked.name(cell))
        for ranked in rankings(results)
        for cell in (*ranked.cells, *ranked.set_aside, *ranked.without)
    }
    columns = (
        Column("workload", "workload", "name"),
        Column("cell", "cell", "name"),
        Column("run", "run", "name"),
        Column("block", "block", "count"),
        Column("attempt", "attempt", "count"),
        Column("rate", "rate", "number"),
        Column("p50_s", "step p50", "seconds"),
        Column("p95_s", "step p95", "seconds"),
        Column("steady_from", "steady from window", "count"),
        Column("windows", "windows", "count"),
        Column("outcome", "outcome"),
        Column("verdict", "verdict"),
        Column("counted", "counted", "flag"),
        Column("why", "why", "long"),
        Column("origin", "origin"),
        Column("directory", "raw data", "path"),
    )
    rows = [
        (
            *labels[(cell.run, cell.key)],
            trial.run,
            trial.block,
            trial.attempt,
            trial.rate,
            trial.p50_s,
            trial.p95_s,
            trial.steady_from,
            trial.windows,
            trial.outcome,
            trial.verdict,
            trial.counted,
            why(trial),
            trial.origin,
            _trial_place(cell, trial),
        )
        for cell in results.cells
        for trial in cell.trials
    ]
    return Table("trials", "Every trial", columns, tuple(rows))


def _trial_place(cell: CellResult, trial: TrialResult) -> str:
    attempt = "" if trial.attempt == 1 else f".{trial.attempt}"
    return f"{_place(cell)}/trial-{trial.block}{attempt}"


def why(trial: TrialResult) -> str:
    """Say why a trial is marked or does not count."""
    return "; ".join(part for part in (trial.reason, *trial.evidence) if part)


def holes(results: Results) -> Table:
    """Lay out the cells that were asked for and left out."""
    columns = (Column("cell", "cell", "name"), Column("why", "why", "long"))
    return Table(
        "holes", "Left out, and why", columns, tuple((h.label, h.why) for h in results.holes)
    )


def gate(results: Results) -> Table:
    """Lay out whether the cells compute the same thing."""
    columns = (
        Column("workload", "workload", "name"),
        Column("cell", "cell", "name"),
        Column("machine", "machine", "name"),
        Column("gate", "equivalence"),
        Column("detail", "detail", "long"),
    )
    rows = [
        (r.workload, r.name(cell), r.machine(cell), cell.gate.state, cell.gate.detail)
        for r in rankings(results)
        for cell in (*r.cells, *r.set_aside, *r.without)
    ]
    return Table("gate", "Equivalence", columns, tuple(rows))


def runs(results: Results) -> Table:
    """Lay out where the numbers come from."""
    columns = (
        Column("run", "run", "name"),
        Column("machine", "machine", "name"),
        Column("started", "started"),
        Column("seed", "seed"),
        Column("directory", "directory"),
    )
    rows = [
        (
            run.name,
            machine_name(run),
            numbers.moment(run.started_wall_ns),
            str(run.seed),
            run.directory,
        )
        for run in results.runs
    ]
    return Table("runs", "Runs", columns, tuple(rows))


TABLES: dict[str, Callable[[Results], Table]] = {
    "ranking": ranking,
    "cells": cells,
    "trials": trials,
    "scaling": scaling,
    "gate": gate,
    "holes": holes,
    "runs": runs,
}


def table(results: Results, name: str) -> Table:
    """Make a table by its name."""
    if name not in TABLES:
        known = ", ".join(TABLES)
        raise UsageError(
            f"no table is called '{name}'.{nearest(name, TABLES)}\n    Known: {known}."
        )
    return TABLES[name](results)


def counts(results: Results) -> tuple[int, int]:
    """Count the trials that stand behind the numbers, and all that were run."""
    listed = trial_list(results)
    return sum(t.counted for t in listed), len(listed)
