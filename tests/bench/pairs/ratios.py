"""Turn the times of alternating steppers into ratios and their intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

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


def compared(made: list[Times], enough: float, say: Callable[[str], None]) -> bool:
    """Say the ratios of all processes, A/A beside; tell whether ours is surely fast enough."""
    lowest = 0.0
    for what, over, under in (("plain / ours", "plain", "ours"), ("A/A", "again", "plain")):
        for name, clock in (("wall", WALL), ("CPU", CPU)):
            ratios = [ratio(times, over, under, clock) for times in made]
            middle, low = interval(ratios)
            if (what, clock) == ("plain / ours", WALL):
                lowest = low
            say(
                f"    {what:12} {name:4} {middle:.3f}, 95 % above {low:.3f}, "
                f"{len(ratios)} processes from {min(ratios):.3f} to {max(ratios):.3f}"
            )
    is_fast = lowest >= enough
    say(f"    at least {enough} of the script's speed: {'holds' if is_fast else 'DOES NOT HOLD'}")
    return is_fast
