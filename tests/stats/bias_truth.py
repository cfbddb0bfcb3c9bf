"""Simulate studies by turns whose bias is known: how often does the interval hold the ratio alone.

``python -m tests.stats.bias_truth`` prints the table of docs/method.md, in minutes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from math import log
from statistics import median

from harness.stats.compare import compare
from harness.stats.turn_bias import turn_bias, widened

Noise = Callable[[random.Random], float]
BLOCKS, ROUNDS = 6, 7


def _heavy(chance: random.Random) -> float:
    return 0.02 * chance.gauss(0, 1) / max(1e-9, chance.gammavariate(1.5, 1 / 1.5)) ** 0.5


def _bursts(chance: random.Random) -> float:
    return chance.gauss(0, 0.01) + (0.3 if chance.random() < 0.1 else 0.0)


MACHINES: dict[str, Noise] = {
    "quiet": lambda chance: chance.gauss(0, 0.01),
    "shared": lambda chance: chance.gauss(0, 0.1),
    "heavy tails": _heavy,
    "a burst in one of ten": lambda chance: _bursts(chance) - _bursts(chance),
}
"""What the log ratio of two neighbouring turns scatters by."""


@dataclass(frozen=True)
class Coverage:
    """Shares of studies whose interval holds the ratio alone, and median widths."""

    plain: float
    widened: float
    plain_width: float
    widened_width: float


def coverage(noise: Noise, *, bias: float, checks: int, studies: int, seed: int = 1) -> Coverage:
    """Simulate studies of two cells that are alike; turns slow the reference by ``bias``."""
    chance = random.Random(seed)
    plain: list[tuple[float, float]] = []
    wide: list[tuple[float, float]] = []
    for _ in range(studies):
        blocks = [
            bias + median(noise(chance) for _ in range(ROUNDS)) + chance.gauss(0, 0.005)
            for _ in range(BLOCKS)
        ]
        told = compare({"cell": blocks}, alpha=0.05, equivalence=0.03, seed=1)["cell"]
        assert told.ratio is not None
        assert told.low is not None
        assert told.high is not None
        cell = turn_bias([noise(chance) for _ in range(checks)])
        reference = turn_bias([noise(chance) - bias for _ in range(checks)])
        assert cell is not None
        assert reference is not None
        ends = (log(told.low), log(told.high))
        plain.append(ends)
        wide.append(widened(log(told.ratio), *ends, cell=cell, reference=reference))
    return Coverage(_share(plain), _share(wide), _width(plain), _width(wide))


def _share(intervals: list[tuple[float, float]]) -> float:
    return sum(low <= 0 <= high for low, high in intervals) / len(intervals)


def _width(intervals: list[tuple[float, float]]) -> float:
    return median(high - low for low, high in intervals)


def main() -> None:
    """Print the table."""
    print("| turns side by side | bias | checks | by turns: covered | width | widened | width |")
    print("|---|---|---|---|---|---|---|")
    for name, noise in MACHINES.items():
        for bias, checks in product((0.0, 0.01, 0.03), (24, 200)):
            seen = coverage(noise, bias=bias, checks=checks, studies=1000)
            plain, wide = seen.plain_width, seen.widened_width
            place = f"{name} | {bias * 100:.0f} % | {checks}"
            print(f"| {place} | {seen.plain:.3f} | {plain:.3f} | {seen.widened:.3f} | {wide:.3f} |")


if __name__ == "__main__":
    main()
