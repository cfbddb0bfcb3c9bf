"""Count how often beginnings, rhythms, clock switches and late compilations are found or imagined.

``python -m tests.stats.windows_truth`` prints the tables of docs/method.md in a few minutes of one
core. A cell has six trials of 300 windows with 1 % of noise.
"""

from __future__ import annotations

import argparse
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np

from harness.analysis import beginnings
from harness.stats.windows.steady import begin, describe
from harness.verdicts import recurring
from harness.verdicts.thresholds import THRESHOLDS, judge, worst
from tests.stats.simulator import NOISE, Array

TRIALS, WINDOWS = 6, 300
CELLS = (
    "nothing",
    "red noise of 3 %, 0.9 alike",
    "bursts of 20 % in 2 % of windows",
    "the first 30 windows 30 % slower, in each trial",
    "the first 30 windows 30 % slower, in one trial",
    "a decay from 30 % in 30 windows, in each trial",
    "a neighbour of 10 % that comes after 30 % of each trial and stays",
    "a neighbour of 10 % that leaves after 30 % of one trial",
)
RHYTHMS = {"none": 0.0, "swing of 3 %": 0.03, "swing of 5 %": 0.05, "swing of 8 %": 0.08}
ALIKE = (0.0, 0.5, 0.9, 0.98)


def red(alike: float, spread: float, chance: np.random.Generator) -> Array:
    """Draw a course whose neighbours are alike."""
    course = np.zeros(WINDOWS)
    course[0] = spread * chance.standard_normal()
    steps = spread * (1 - alike**2) ** 0.5 * chance.standard_normal(WINDOWS)
    for index in range(1, WINDOWS):
        course[index] = alike * course[index - 1] + steps[index]
    return course


def cell(kind: str, chance: np.random.Generator) -> list[Array]:
    """Draw the windows of a cell's trials."""
    logs = NOISE * chance.standard_normal((TRIALS, WINDOWS))
    if kind.startswith("red"):
        logs += [red(0.9, 0.03, chance) for _ in range(TRIALS)]
    elif kind.startswith("bursts"):
        logs += 0.2 * (chance.random(logs.shape) < 0.02)
    elif kind.startswith("the first"):
        logs[: 1 if "one trial" in kind else TRIALS, :30] += np.log(1.3)
    elif kind.startswith("a decay"):
        logs += np.log(1 + 0.3 * np.exp(-np.arange(WINDOWS) / 10))
    elif "comes" in kind:
        logs[:, WINDOWS * 3 // 10 :] += 0.1
    elif "leaves" in kind:
        logs[0, : WINDOWS * 3 // 10] += 0.1
    return list(0.02 * np.exp(logs))


def cuts(kind: str, cells: int, seed: int = 1) -> tuple[float, float, float]:
    """Give the share of cells that lose a beginning, how much, and of trials called unsteady."""
    chance = np.random.default_rng((CELLS.index(kind), seed))
    cut: list[int] = []
    unsteady = 0
    for _ in range(cells):
        times = cell(kind, chance)
        own = [begin(one) for one in times]
        trials: Any = [SimpleNamespace(steady_from=one.start, input=None) for one in own]
        common = beginnings.shared(trials, lambda some=times: some)  # type: ignore[misc]
        begun = own if common is None else [common] * TRIALS
        cut.append(max(one.start for one in begun))
        unsteady += sum(
            worst(judge(one, describe(windows[one.start :]))) == "unsteady"
            for one, windows in zip(begun, times, strict=True)
        )
    lost = [one for one in cut if one]
    return len(lost) / cells, float(np.median(lost)) if lost else 0.0, unsteady / cells / TRIALS


def rhythms(swing: float, alike: float, trials: int) -> float:
    """Give the share of trials in which a rhythm is seen, in red noise of 3 %."""
    chance = np.random.default_rng((round(100 * swing), round(100 * alike)))
    found = 0
    for _ in range(trials):
        logs = NOISE * chance.standard_normal(WINDOWS)
        if alike:
            logs += red(alike, 0.03, chance)
        logs += swing * (np.arange(WINDOWS) % 20 < 10)
        shape = describe(0.02 * np.exp(logs))
        found += shape.period is not None and shape.rhythm > THRESHOLDS["rhythm"].value
    return found / trials


def switches(gap: float, trials: int) -> float:
    """Give the share of trials called unsteady whose clock switches once, anywhere but the ends."""
    chance = np.random.default_rng(round(1000 * gap))
    found = 0
    for _ in range(trials):
        switched = np.arange(WINDOWS) >= chance.integers(WINDOWS // 10, WINDOWS * 9 // 10)
        times = 0.02 * np.exp(gap * switched + NOISE * chance.standard_normal(WINDOWS))
        steady = begin(times)
        found += worst(judge(steady, describe(times[steady.start :]))) == "unsteady"
    return found / trials


def stalls(own: float, others: float, cells: int) -> float:
    """Give the share of cells whose stalls are called their own.

    With the chance ``own`` a trial compiles late, within a window of the same place; with
    ``others`` somebody else makes it stand still, anywhere.
    """
    chance = np.random.default_rng((round(100 * own), round(100 * others)))
    found = 0
    for _ in range(cells):
        places = np.where(
            chance.random(TRIALS) < own, 100 + chance.integers(-1, 2, TRIALS), WINDOWS
        )
        elsewhere = chance.integers(0, WINDOWS, TRIALS)
        disturbed = chance.random(TRIALS) < others
        first = np.where(disturbed, np.minimum(places, elsewhere), places)
        trials: Any = [
            SimpleNamespace(rate=1.0, stall_at=int(at) if at < WINDOWS else None) for at in first
        ]
        found += recurring.is_own_stall(trials)
    return found / cells


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cells", type=int, default=2_000)
    cells = parser.parse_args().cells
    for kind in CELLS:
        share, windows, unsteady = cuts(kind, cells)
        sys.stdout.write(f"| {kind} | {share:.3f} | {windows:.0f} | {unsteady:.3f} |\n")
    for name, swing in RHYTHMS.items():
        found = " | ".join(f"{rhythms(swing, alike, cells):.3f}" for alike in ALIKE)
        sys.stdout.write(f"| {name} | {found} |\n")
    for gap in (0.0, 0.02, 0.03, 0.05, 0.08, 0.2):
        sys.stdout.write(f"| {gap * 100:.0f} % | {switches(gap, cells):.3f} |\n")
    for own, others in ((1.0, 0.0), (1.0, 0.2), (0.8, 0.2), (0.0, 0.2), (0.0, 0.5), (0.0, 1.0)):
        sys.stdout.write(f"| {own:.1f} | {others:.1f} | {stalls(own, others, 10 * cells):.4f} |\n")


if __name__ == "__main__":
    main()
