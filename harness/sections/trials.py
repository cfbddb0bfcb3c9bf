"""The section of every trial: as a dot around its cell's rate, and as a row."""

from __future__ import annotations

from collections.abc import Iterator

from harness.analysis.context.interval_words import is_brought
from harness.analysis.context.trial_tally import tally
from harness.analysis.evidence import Evidence
from harness.analysis.ranking import Ranking
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.sections.contract.blocks import Block, CellTrials, Dots, Fold, Gist, Note, Sheet
from harness.sections.contract.columns import trial_place, why
from harness.sections.contract.section import Section
from harness.store.records import RunInfo
from harness.units import counted
from harness.verdicts.credibility.amount import amount_in_words
from harness.verdicts.credibility.findings import FLOOR
from harness.verdicts.credibility.plausible import rate_in_words
from harness.verdicts.results import CellResult, TrialResult

_MOST_LISTED = 1500
_MOST_DRAWN = 180
_COLUMNS = (
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
    Column("proof", "proof", "long"),
    Column("multiplications", "multiplications", "long"),
    Column("implied", "implied operations", "long"),
    Column("counted", "counted", "flag"),
    Column("why", "why", "long"),
    Column("origin", "origin"),
    Column("directory", "raw data", "path"),
)


def trials(results: Results) -> Table:
    """Lay out every trial, rejected ones with why."""
    labels = {
        (cell.run, cell.key): (ranked.workload, ranked.name(cell))
        for ranked in results.rankings
        for cell in (*ranked.cells, *ranked.set_aside, *ranked.without)
    }
    runs = {run.name: run for run in results.runs}
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
            trial.proof,
            amount_in_words(trial.facts.get("multiplications")),
            _implied(runs.get(cell.run), cell, trial),
            trial.counted,
            why(trial),
            trial.origin,
            trial_place(cell, trial),
        )
        for cell in results.cells
        for trial in cell.trials
    ]
    return Table("trials", "Every trial", _COLUMNS, tuple(rows))


def _implied(run: RunInfo | None, cell: CellResult, trial: TrialResult) -> str:
    """Say what a rate implies, and what it is held to; nothing of a trial that nothing computed."""
    if run is None or trial.origin != "measured" or cell.framework == FLOOR:
        return ""
    name = trial.facts.get("device_name")
    return rate_in_words(run, cell, trial.rate, hosts=trial.nodes, device_name=name)


def _cells(ranking: Ranking) -> Iterator[CellTrials]:
    for cell in (*ranking.cells, *ranking.set_aside, *ranking.without):
        if cell.trials:
            machine = f" · {ranking.machine(cell)}" if len(ranking.runs) > 1 else ""
            reasons = tuple((trial, why(trial)) for trial in cell.trials)
            name = ranking.name(cell) + machine
            yield CellTrials(name, cell.run, cell.framework, cell.rate, reasons)


def _dots(ranking: Ranking) -> Dots:
    """Draw all cells; of very many the first, and those that lost a trial."""
    cells = tuple(_cells(ranking))
    drawn = tuple(
        cell
        for place, cell in enumerate(cells)
        if place < _MOST_DRAWN or not all(trial.counted for trial, _ in cell.trials)
    )
    note = ""
    if len(drawn) < len(cells):
        note = (
            f"Drawn are {len(drawn)} of {len(cells)} cells: the {_MOST_DRAWN} fastest, and those "
            "that lost a trial. bakeoff export --to svg --figure trials draws all."
        )
    return Dots(ranking.workload, ranking.unit, drawn, note)


def _listed(results: Results) -> Fold:
    """List the trials; of very many, those that do not count."""
    table = trials(results)
    total = len(table.rows)
    counted = next(at for at, column in enumerate(table.columns) if column.key == "counted")
    rows = table.rows
    title = f"All {tally(results.cells)} as a table" if total > 1 else "The trial as a table"
    if total > _MOST_LISTED:
        rows = tuple(row for row in rows if not row[counted])
        title = (
            f"The {len(rows)} of {total} trials that do not count (all of them: "
            "bakeoff export --table trials)"
        )
    by = ("outcome", "verdict")
    return Fold(title, (Sheet(table, by, rows),))


def _tolerated(results: Results) -> Iterator[str]:
    """Say of what a study counts all the same that it does, and how often."""
    for run in results.runs:
        for verdict in run.measure.get("tolerate") or ():
            hit = sum(
                trial.counted and trial.verdict == verdict
                for cell in results.cells
                for trial in cell.trials
                if trial.run == run.name
            )
            if hit:
                named = f" in {run.name}" if len(results.runs) > 1 else ""
                yield (
                    f"{counted(hit, 'trial')}{named} found {verdict} "
                    f"{'counts' if hit == 1 else 'count'} all the same: the study says "
                    f'tolerate = ["{verdict}"], for a machine that is never left alone. What '
                    "others did to them is in their rates, and so in the intervals."
                )


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    made = tally(results.cells)
    yield Gist(f"{made.out_of(made.counted)} count")
    yield Note(
        "Each dot is a trial at its rate, all cells of a workload on one axis; the upright line is "
        "the cell's rate, the band its interval. A cross was not counted; the reason stands below "
        "it."
    )
    if any(is_brought(cell) for cell in results.cells):
        yield Note(
            "Where blocks tell a cell's ratio to the reference better than its own rates do, as "
            "by turns, its line and band are moved so that they have that ratio, and may lie "
            "beside its dots."
        )
    for tolerated in _tolerated(results):
        yield Note(tolerated)
    for ranking in results.rankings:
        yield _dots(ranking)
    yield _listed(results)


SECTION = Section("Every trial", 1200, _blocks)
