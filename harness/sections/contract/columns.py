"""What several tables say of a cell alike: its rate beside the reference, where its data lie."""

from __future__ import annotations

from harness.analysis.tables import Column
from harness.store.layout import PILOT, TrialName
from harness.verdicts.results import CellResult, Estimate, Interval, TrialResult

RATE_COLUMNS = (
    Column("rate", "rate", "number"),
    Column("rate_interval", "interval", "interval"),
    Column("unit", "unit"),
    Column("trials", "n", "count"),
    Column("ratio", "× reference", "ratio"),
    Column("ratio_interval", "interval of ×", "interval"),
    Column("answer", "answer"),
)


def parts(estimate: Estimate | None) -> tuple[float | None, Interval | None, int]:
    """Take an estimate apart; unknown stays unknown, and n is 0."""
    return (estimate.value, estimate.interval, estimate.n) if estimate else (None, None, 0)


def place(cell: CellResult) -> str:
    """Say where the raw data of a cell lie, from the folder of runs."""
    return f"{cell.run}/cells/{cell.key}"


def trial_place(cell: CellResult, trial: TrialResult) -> str:
    """Say the same of a trial."""
    return f"{place(cell)}/{TrialName(trial.block, trial.attempt)}"


def why(trial: TrialResult) -> str:
    """Say why a trial is marked or does not count."""
    pilot = "chose the reference, and is discarded" if trial.block == PILOT else ""
    return "; ".join(part for part in (pilot, trial.reason, *trial.evidence) if part)
