"""Count what intervals hold where a cell's trials have another shape than the reference's.

``python -m tests.stats.shapes`` prints the table of docs/method.md, in minutes of one core.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from math import log

import numpy as np

from harness.stats.compare import compare
from harness.stats.estimate import centre_interval
from tests.stats.simulator import NOISE, Array

SHAPES = ("alike", "two speeds", "seldom slow", "hardly ever slow", "lopsided")
_OF_TRUTH = 400_000


@dataclass(frozen=True)
class Held:
    """In which share of studies intervals held a truth."""

    mean: float
    """The ratio of the geometric means, by the interval of the ratio."""
    median: float
    """The median of the blocks' ratios, by the same."""
    own_mean: float
    """The cell's geometric mean, by its rate's own interval."""
    own_median: float


def trials(shape: str, size: tuple[int, int], chance: np.random.Generator) -> Array:
    """Draw logarithms of trials: studies by blocks."""
    logs = NOISE * chance.standard_normal(size)
    if shape == "two speeds":
        logs -= 0.08 * (chance.random(size) < 0.4)
    elif shape == "seldom slow":
        logs -= 0.1 * (chance.random(size) < 0.1)
    elif shape == "hardly ever slow":
        logs -= 0.3 * (chance.random(size) < 0.03)
    elif shape == "lopsided":
        logs = -0.05 * chance.exponential(1, size)
    return logs


def held(shape: str, cells: int, blocks: int, studies: int) -> Held:
    """Compare one cell of a shape, and others that are like the reference, with the reference."""
    chance = np.random.default_rng((SHAPES.index(shape), cells, blocks))
    many = trials(shape, (1, _OF_TRUTH), chance)[0]
    beside = many - NOISE * chance.standard_normal(_OF_TRUTH)
    truths = float(beside.mean()), float(np.median(beside))
    own_truths = float(many.mean()), float(np.median(many))
    counts = np.zeros(4)
    for row in trials(shape, (studies, blocks), chance):
        reference = NOISE * chance.standard_normal(blocks)
        others = NOISE * chance.standard_normal((cells - 1, blocks)) - reference
        rows = {"cell": list(row - reference), **{str(i): list(o) for i, o in enumerate(others)}}
        told = compare(rows)["cell"]
        own = centre_interval(list(np.exp(row)))
        assert own is not None
        ends = log(told.low or 1), log(told.high or 1)
        own_ends = log(own.low), log(own.high)
        counts += [
            *(ends[0] <= truth <= ends[1] for truth in truths),
            *(own_ends[0] <= truth <= own_ends[1] for truth in own_truths),
        ]
    return Held(*(counts / studies).tolist())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--studies", type=int, default=10_000)
    studies = parser.parse_args().studies
    for shape in SHAPES:
        for cells in (1, 5):
            for blocks in (6, 7, 10):
                one = held(shape, cells, blocks, studies)
                shares = (one.mean, one.median, one.own_mean, one.own_median)
                text = " | ".join(f"{share:.3f}" for share in shares)
                sys.stdout.write(f"| {shape} | {cells} | {blocks} | {text} |\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
