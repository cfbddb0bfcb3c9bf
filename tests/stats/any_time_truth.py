"""Count what looking at two cells after every block costs, and how soon it answers.

``python -m tests.stats.any_time_truth`` prints the table of docs/method.md within a minute. It
reads ``always_valid`` once for each number of blocks: its intervals scale with the scatter.
"""

from __future__ import annotations

import sys
from math import log

import numpy as np

from harness.stats.answers import EQUIVALENCE
from harness.stats.repetition import always_valid
from tests.stats.simulator import NOISE, Array

FIRST, MOST = 4, 30
NOISES = (
    *("normal", "heavy", "bursts", "two speeds", "rounded", "a bad block", "wide"),
    "one skewed",
)


def log_ratios(noise: str, studies: int, chance: np.random.Generator) -> Array:
    """Draw the noise of block log ratios: studies by blocks."""
    size = (studies, MOST)
    logs: Array = 2**0.5 * NOISE * chance.standard_normal(size)
    if noise == "heavy":
        logs = 2**0.5 * NOISE * chance.standard_t(3, size)
    elif noise == "bursts":
        logs += 0.1 * (chance.random(size) < 0.1) - 0.1 * (chance.random(size) < 0.1)
    elif noise == "two speeds":
        logs += 0.08 * (chance.random(size) < 0.4) - 0.08 * (chance.random(size) < 0.4)
    elif noise == "rounded":
        logs = np.round(logs, 2)
    elif noise == "a bad block":
        logs[:, 0] += 0.2 * chance.standard_normal(studies)
    elif noise == "wide":
        logs *= 20
    elif noise == "one skewed":
        logs += 5 * NOISE * (chance.exponential(1, size) - 1)
    return logs


def reach(blocks: int) -> float:
    """Give half the width of an interval in standard deviations, of this or any other data."""
    some = [float(place) for place in range(blocks)]
    low, high = always_valid.interval(some, 0.05)
    return (high - low) / 2 / float(np.std(some, ddof=1))


def count(noise: str, effect: float, studies: int = 10_000) -> tuple[float, float, float]:
    """Give the shares of studies answered wrong and right, and the blocks that were taken."""
    chance = np.random.default_rng((NOISES.index(noise), round(1000 * effect)))
    logs = log_ratios(noise, studies, chance) + effect
    took = np.full(studies, MOST)
    answer = np.zeros(studies, dtype=int)
    margin = log(1 + EQUIVALENCE)
    for blocks in range(FIRST, MOST + 1):
        seen = logs[:, :blocks]
        centre = seen.mean(axis=1)
        half = reach(blocks) * np.maximum(seen.std(axis=1, ddof=1), 1e-6)
        low, high = centre - half, centre + half
        now = np.select([(low >= -margin) & (high <= margin), low > 0, high < 0], [1, 2, 3], 0)
        fresh = (answer == 0) & (now > 0)
        answer[fresh], took[fresh] = now[fresh], blocks
    right = (2,) if effect > log(1 + EQUIVALENCE) else (1, 2) if effect else (1,)
    is_right = np.isin(answer, right)
    return float((~is_right & (answer > 0)).mean()), float(is_right.mean()), float(took.mean())


if __name__ == "__main__":
    for noise in NOISES:
        figures = [count(noise, effect) for effect in (0.0, log(1.02), log(1.05))]
        text = " | ".join(
            f"{wrong:.3f} | {right:.3f} | {took:.1f}" for wrong, right, took in figures
        )
        sys.stdout.write(f"| {noise} | {text} |\n")
