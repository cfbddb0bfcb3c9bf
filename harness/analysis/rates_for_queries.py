"""Put what was computed of cells and trials into the tables that queries read."""

from __future__ import annotations

from pathlib import PurePath

from harness.analysis.analyse import analyse
from harness.analysis.papers.finding_measures import busiest_disk
from harness.store.dataset import Dataset
from harness.verdicts.results import CellResult, TrialResult

_ENDS = ("DOUBLE", "DOUBLE", "DOUBLE")
_OF_CELLS = {
    "rate_unit": "VARCHAR",
    **dict(zip(("rate", "rate_low", "rate_high"), _ENDS, strict=True)),
    "n": "BIGINT",
    **dict(zip(("ratio", "ratio_low", "ratio_high"), _ENDS, strict=True)),
    "answer": "VARCHAR",
}
_USE = ("cpu_busy", "gpu_busy", "gpu_memory_busy", "disk_busy", "power_w")
_OF_TRIALS = {
    "rate": "DOUBLE",
    "p50_s": "DOUBLE",
    "verdict": "VARCHAR",
    "counted": "BOOLEAN",
    **dict.fromkeys(_USE, "DOUBLE"),
}
_CELL = {"run": "VARCHAR", "cell_key": "VARCHAR"}
_TRIAL = {**_CELL, "trial": "VARCHAR"}


def add_rates(dataset: Dataset) -> None:
    """Give ``cells`` their rate, interval, ratio and answer, and ``trials`` their rate."""
    results = analyse(dataset)
    cells = [_of_cell(cell) for cell in results.cells]
    trials = [_of_trial(trial) for cell in results.cells for trial in cell.trials]
    dataset.add_columns("cells", _CELL, _OF_CELLS, cells)
    dataset.add_columns("trials", _TRIAL, _OF_TRIALS, trials)


def _of_cell(cell: CellResult) -> tuple[object, ...]:
    rate, compared = cell.rate, cell.comparison
    within = rate.interval if rate else None
    between = compared.interval if compared else None
    return (
        cell.run,
        cell.key,
        rate.unit if rate else None,
        rate.value if rate else None,
        within.low if within else None,
        within.high if within else None,
        rate.n if rate else 0,
        compared.ratio if compared else None,
        between.low if between else None,
        between.high if between else None,
        compared.answer if compared else None,
    )


def _of_trial(trial: TrialResult) -> tuple[object, ...]:
    name = PurePath(trial.directory).name
    said = (trial.rate, trial.p50_s, trial.verdict, trial.counted)
    used = trial.utilisation
    named = (used.get(one) for one in ("cpu", "gpu", "gpu_memory"))
    use = (*named, busiest_disk(trial), used.get("power_w"))
    return (trial.run, trial.cell_key, name, *said, *use)
