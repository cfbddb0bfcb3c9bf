"""Lay results out as tables: once, for the page and all exports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness import errors
from harness.analysis import numbers
from harness.analysis.ranking import Ranking, machine_name, rankings
from harness.analysis.tables import Column, Table
from harness.sections.cells import RATE_COLUMNS, cells, parts, place
from harness.sections.scaling.expected import expected
from harness.sections.scaling.gradient_exchange import communication
from harness.sections.scaling.messages import collectives
from harness.sections.scaling.scaling import scaling
from harness.sections.scaling.start_up import starting
from harness.sections.what_ran import what_ran
from harness.verdicts.results import CellResult, Results, TrialResult


def _ranking_rows(ranking: Ranking) -> list[tuple[Any, ...]]:
    rows = []
    for position, cell in enumerate(ranking.cells, 1):
        value, interval, n = parts(cell.rate)
        comparison = cell.comparison
        rows.append(
            (
                ranking.workload,
                position,
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
        *RATE_COLUMNS,
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
    return f"{place(cell)}/trial-{trial.block}{attempt}"


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
    "expected": expected,
    "collectives": collectives,
    "communication": communication,
    "starting": starting,
    "gate": gate,
    "what-ran": what_ran,
    "holes": holes,
    "runs": runs,
}


def table(results: Results, name: str) -> Table:
    """Make a table by its name."""
    if name not in TABLES:
        known = ", ".join(TABLES)
        raise errors.UsageError(
            f"no table is called '{name}'.{errors.nearest(name, TABLES)}\n    Known: {known}."
        )
    return TABLES[name](results)
