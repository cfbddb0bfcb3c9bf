"""Simulate comparisons of two cells whose trials are lost, at random or for a reason of their own.

``python -m tests.stats.losses_truth --studies N`` prints the table of docs/method.md: shares of
false news, with what is lost left out and with the answer bounded.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from harness.stats.answers import EQUIVALENCE
from harness.stats.compare import compare
from harness.stats.losses import Losses, compared

RERUNS = 2


@dataclass(frozen=True)
class Lossy:
    """A study of two cells, and what its trials are lost by."""

    name: str
    own: bool
    """Whether the noisier cell loses its slowest trials; else both lose any."""
    again: bool
    """Whether a lost trial is run again."""
    share: float
    blocks: int
    noise: float = 0.05
    """Of the cell; the reference's is 1 %."""
    effect: float = 0.0


SETTINGS = (
    Lossy("timeouts of the noisier", True, False, 0.10, 8),
    Lossy("timeouts of the noisier", True, False, 0.25, 10),
    Lossy("timeouts of the noisier", True, False, 0.40, 14),
    Lossy("timeouts of the noisier", True, False, 0.50, 20),
    Lossy("re-runs of the noisier", True, True, 0.10, 7),
    Lossy("re-runs of the noisier", True, True, 0.25, 7),
    Lossy("re-runs of the noisier", True, True, 0.40, 7),
    Lossy("re-runs of the noisier", True, True, 0.50, 10),
    Lossy("lost at random", False, False, 0.05, 9, 0.01),
    Lossy("lost at random", False, False, 0.05, 9, 0.01, 0.05),
    Lossy("lost at random", False, False, 0.10, 9, 0.01, 0.05),
    Lossy("re-runs at random", False, True, 0.05, 7, 0.01, 0.05),
    Lossy("re-runs at random", False, True, 0.20, 7, 0.01),
    Lossy("re-runs at random", False, True, 0.20, 7, 0.01, 0.05),
)


def draw(setting: Lossy, chance: np.random.Generator) -> tuple[dict[int, float], Losses]:
    """Draw the log ratios of the blocks that are left, and which cell lost trials in which."""
    cut = NormalDist().inv_cdf(setting.share) * setting.noise
    logs: dict[int, float] = {}
    lost: tuple[set[int], set[int]] = (set(), set())
    for block in range(1, setting.blocks + 1):
        ends = []
        for side, noise in enumerate((setting.noise, 0.01)):
            for _ in range(1 + RERUNS * setting.again):
                log = chance.normal(0, noise)
                is_lost = log < cut if setting.own else chance.random() < setting.share
                if not is_lost or (setting.own and side == 1):
                    ends.append(log)
                    break
                lost[side].add(block)
        if len(ends) == 2:
            logs[block] = setting.effect + ends[0] - ends[1]
    return logs, Losses(*map(frozenset, lost))


def answers(setting: Lossy, studies: int, *, seed: int = 1) -> tuple[Counter[str], Counter[str]]:
    """Count the answers with losses left out, and with the answer bounded."""
    chance = np.random.default_rng(seed)
    plain, honest = Counter[str](), Counter[str]()
    for _ in range(studies):
        logs, losses = draw(setting, chance)
        plain[compare({"cell": list(logs.values())})["cell"].answer] += 1
        told = compared(
            {"cell": logs},
            {"cell": losses},
            described=str,
            equivalence=EQUIVALENCE,
            compare=compare,
        )
        honest[told["cell"].answer] += 1
    return plain, honest


def false_share(told: Counter[str], setting: Lossy) -> float:
    """Give the share of studies whose news is false: none, or the wrong way, is true."""
    wrong = told["slower"] + (0 if setting.effect > 0 else told["faster"])
    return wrong / told.total()


def bounds(share: float, studies: int) -> tuple[float, float]:
    """Give the exact 95 % bounds of a share (Clopper and Pearson), by bisection."""
    count = round(share * studies)

    def root(most: int, tail: float) -> float:
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if _at_most(most, studies, middle) > tail else (low, middle)
        return low

    return (root(count - 1, 0.975) if count else 0.0), root(count, 0.025)


def _at_most(count: int, of: int, chance: float) -> float:
    places = np.arange(0, of + 1)
    if not 0 < chance < 1:
        return float(chance <= 0 or count >= of)
    logs = np.concatenate(([0.0], np.cumsum(np.log((of - places[:-1]) / (places[:-1] + 1)))))
    weights = np.exp(logs + places * np.log(chance) + (of - places) * np.log1p(-chance))
    return float(weights[: count + 1].sum())


def row(setting: Lossy, studies: int) -> Sequence[str]:
    """Give a row of the table."""
    cells = [setting.name, f"{setting.share * 100:.0f} %", f"{setting.blocks}"]
    cells.append(f"{setting.effect * 100:.0f} %")
    for told in answers(setting, studies):
        wrong = false_share(told, setting)
        low, high = bounds(wrong, studies)
        right = told["faster" if setting.effect else "same"] / studies
        cells += [f"{wrong:.3f} [{low:.3f}, {high:.3f}]", f"{right:.2f}"]
    return cells


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--studies", type=int, default=2000)
    studies = parser.parse_args().studies
    for setting in SETTINGS:
        print("| " + " | ".join(row(setting, studies)) + " |", flush=True)


if __name__ == "__main__":
    main()
