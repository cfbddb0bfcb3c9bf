"""Simulate pairs of runs on days that differ: how often is a change told that is none, or missed.

``python -m tests.stats.sessions_truth`` prints the table of docs/method.md, in minutes.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass
from itertools import product
from math import log

import numpy as np

from harness.stats.between_runs.sessions import between, scatter
from harness.stats.between_runs.unpaired import changes
from harness.stats.compare import compare
from tests.stats.losses_truth import bounds

BLOCKS = 6
NOISE = 0.01
"""Of a trial."""
IN_TURNS = 0.01
"""Of a block's ratio where both are measured by turns in one session: no more than of a trial."""


@dataclass(frozen=True)
class Night:
    """Two runs, and the runs that repeat the first."""

    day: float
    """Deviation of what all trials of a session have in common."""
    change: float
    repeats: int
    is_by_code: bool = True
    """Whether the repeated runs have the code of the first run; else each has another's."""
    tails: bool = False
    """Whether one day in ten is three times as far off."""


def answers(night: Night, pairs: int, *, seed: int = 1) -> tuple[Counter[str], Counter[str]]:
    """Count what is told by the two runs alone, and with what sessions differ by."""
    chance = np.random.default_rng(seed)
    alone, held = Counter[str](), Counter[str]()
    for _ in range(pairs):
        first, second = _session(night, 0.0, chance), _session(night, log(1 + night.change), chance)
        others = [float(np.mean(_session(night, 0.0, chance))) for _ in range(night.repeats)]
        own = [float(np.mean(first))] if night.is_by_code else []
        told = changes({"cell": first}, {"cell": second})
        alone[told["cell"].answer] += 1
        known = {"cell": scatter([[*own, *others]])}
        held[between(told, {"cell": first}, {"cell": second}, known)["cell"].answer] += 1
    return alone, held


def together(night: Night, pairs: int, *, seed: int = 1) -> Counter[str]:
    """Count what is told where both are measured in one session: the day cancels."""
    chance, told = np.random.default_rng(seed), Counter[str]()
    for _ in range(pairs):
        logs = log(1 + night.change) + chance.normal(0, IN_TURNS * 2**0.5, BLOCKS)
        told[compare({"cell": list(logs)})["cell"].answer] += 1
    return told


def _session(night: Night, change: float, chance: np.random.Generator) -> list[float]:
    day = chance.normal(0, night.day)
    if night.tails and chance.random() < 0.1:
        day *= 3
    return [float(one) for one in change + day + chance.normal(0, NOISE, BLOCKS)]


def changed(told: Counter[str]) -> float:
    """Give the share of pairs in which a change was told."""
    return (told["faster"] + told["slower"]) / told.total()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=2000)
    pairs = parser.parse_args().pairs
    print("| day | repeated runs | change | told of two alone | told | one session |")
    print("|---|---|---|---|---|---|")
    kinds = ((0, True, False), (3, True, False), (5, True, False), (10, True, False))
    kinds += ((20, True, False), (10, False, False), (10, True, True))
    for (repeats, by_code, tails), day in product(kinds, (0.0, 0.02)):
        if tails and not day:
            continue
        for change in (0.0, 0.05, 0.10):
            night = Night(day, change, repeats, by_code, tails)
            shares = [changed(one) for one in (*answers(night, pairs), together(night, pairs))]
            ends = [bounds(share, pairs) for share in shares]
            words = [
                f"{share:.3f} [{low:.3f}, {high:.3f}]"
                for share, (low, high) in zip(shares, ends, strict=True)
            ]
            kind = f"{repeats}" + ("" if by_code else ", of other code")
            days = f"{day * 100:.0f} %" + (", one in ten three times as far" if tails else "")
            print(f"| {days} | {kind} | {change * 100:.0f} % | {' | '.join(words)} |", flush=True)


if __name__ == "__main__":
    main()
