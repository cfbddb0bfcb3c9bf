"""The figures of trials by which two runs are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log

from harness.verdicts.results import CellResult, TrialResult


@dataclass(frozen=True)
class Metric:
    """A figure of a trial, and which direction is better."""

    title: str
    more_is_better: bool
    of: Callable[[TrialResult], float | None]


METRICS: Mapping[str, Metric] = {
    "rate": Metric("work per second", True, lambda trial: trial.rate),
    "p50": Metric("median step time", False, lambda trial: trial.p50_s),
    "p95": Metric("95th percentile of step time", False, lambda trial: trial.p95_s),
    "p99": Metric("99th percentile of step time", False, lambda trial: trial.p99_s),
    "first-step": Metric("time of the first step", False, lambda trial: trial.first_step_s),
}


def logs(cell: CellResult, metric: Metric) -> dict[int, float]:
    """Give the logarithm of the figure of each block, turned so that more is better."""
    sign = 1 if metric.more_is_better else -1
    by_block = {}
    for trial in cell.trials:
        value = metric.of(trial)
        if trial.counted and value is not None and value > 0:
            by_block[trial.block] = sign * log(value)
    return by_block
