"""This file turns the times of alternating steppers into ratios and their intervals."""

from __future__ import annotations

import math
import statistics

WALL, CPU = 0, 1
Times = dict[str, list[tuple[float, float]]]


def ratio(times: Times, over: str, under: str, clock: int) -> float:
    """Give one process's ratio: the median over rounds, each of which has both orders."""
    rounds = range(0, len(times[over]), 2)
    return statistics.median(
        (times[over][start][clock] + times[over][start + 1][clock])
        / (times[under][start][clock] + times[under][start + 1][clock])
        for start in rounds
    )


def interval(ratios: list[float]) -> tuple[float, float]:
    """Give the geometric mean and the lower end of its one-sided 95 % interval (Student's t)."""
    from scipy import stats

    logs = [math.log(value) for value in ratios]
    spread = statistics.stdev(logs) / math.sqrt(len(logs))
    middle = statistics.fmean(logs)
    return math.exp(middle), math.exp(middle - stats.t.ppf(0.95, len(logs) - 1) * spread)
