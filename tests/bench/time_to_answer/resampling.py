"""Make studies from recorded blocks: how often they are right, and how long they take.

The bank holds blocks of equal cells, of runs of a fixed length: one that stopped when it was
answered would favour blocks that answer. A difference is imposed: it is added to each block's log
ratio.

*Cut* studies follow each other in a run, as they would have been carried out: each takes the next
blocks until it is answered. *Drawn* ones take blocks at random, with replacement, after the bank's
own mean is taken out, so that their shares speak of noise shaped as recorded, not of a few blocks'
mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log
from pathlib import Path
from statistics import median

import numpy as np

from harness.analysis.stopping import ALPHA
from harness.stats.answers import EQUIVALENCE
from harness.stats.compare import compare
from tests.bench.time_to_answer.calibration import DIFFERENCES
from tests.bench.time_to_answer.judging import FALSE, RIGHT, judged, named, share
from tests.bench.time_to_answer.settings import MOST_BLOCKS
from tests.bench.time_to_answer.studies import Record, compared_in

FIRST_LOOK = 4
FEWEST = 8
"""So many blocks a bank has at least: fewer repeat themselves in each study."""
TRUTHS = (1.0, *(1 / (1 + one) for one in DIFFERENCES))


@dataclass(frozen=True)
class Told:
    """What studies of one kind said, and how long they took until they said it."""

    judged: Counter[str]
    seconds: tuple[float, ...]

    @property
    def answered_s(self) -> float:
        """Seconds spent for each right answer; infinite without any."""
        return sum(self.seconds) / self.judged[RIGHT] if self.judged[RIGHT] else float("inf")


@dataclass(frozen=True)
class Bank:
    """The blocks of equal cells, one array for each run."""

    logs: tuple[np.ndarray, ...]
    seconds: tuple[np.ndarray, ...]

    @property
    def blocks(self) -> int:
        """How many they are."""
        return sum(map(len, self.logs))


def banked(records: Sequence[Record]) -> Iterator[tuple[str, Bank]]:
    """Gather the blocks of each kind of study of equal cells."""

    def kind(one: Record) -> str:
        return named(one.setting)

    for name, some in groupby(sorted(records, key=kind), kind):
        runs = [one for one in some if not one.difference]
        logs = tuple(np.array([one.logs[at] for at in sorted(one.logs)]) for one in runs)
        seconds = tuple(np.array([one.block_s[at] for at in sorted(one.logs)]) for one in runs)
        if sum(map(len, logs)) >= FEWEST:
            yield name, Bank(logs, seconds)


def banked_of_runs(runs: Sequence[Path], condition: str) -> Iterator[tuple[str, Bank]]:
    """Gather the blocks of each cell of finished runs of a study, its difference taken out."""
    found: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for run in runs:
        for label, _, logs, block_s in compared_in(run):
            at = sorted(logs)
            pair = np.array([logs[one] for one in at]), np.array([block_s[one] for one in at])
            found.setdefault(label, []).append(pair)
    for label, pairs in found.items():
        centre = np.concatenate([logs for logs, _ in pairs]).mean()
        yield (
            f"{condition} | {label} | turns",
            Bank(tuple(logs - centre for logs, _ in pairs), tuple(one for _, one in pairs)),
        )


def cut(bank: Bank, truth: float) -> Told:
    """Cut the bank's runs into studies; what is left of a run at its end is none."""
    told: Counter[str] = Counter()
    took: list[float] = []
    for logs, seconds in zip(bank.logs, bank.seconds, strict=True):
        at = 0
        while at + FIRST_LOOK <= len(logs):
            answer, blocks = _answer([float(one) + log(truth) for one in logs[at:][:MOST_BLOCKS]])
            is_over = answer != "cannot tell" or blocks == MOST_BLOCKS
            if not is_over:
                break
            told[judged(answer, truth)] += 1
            took.append(float(seconds[at : at + blocks].sum()))
            at += blocks
    return Told(told, tuple(took))


def drawn(bank: Bank, truth: float, studies: int, seed: int = 1) -> Told:
    """Draw studies from the bank's blocks."""
    chance = np.random.default_rng(seed)
    every, spent = np.concatenate(bank.logs), np.concatenate(bank.seconds)
    every = every - every.mean() + log(truth)
    told: Counter[str] = Counter()
    took = []
    for _ in range(studies):
        places = chance.integers(0, len(every), MOST_BLOCKS)
        answer, blocks = _answer(list(map(float, every[places])))
        told[judged(answer, truth)] += 1
        took.append(float(spent[places][:blocks].sum()))
    return Told(told, tuple(took))


def _answer(logs: Sequence[float]) -> tuple[str, int]:
    for blocks in range(FIRST_LOOK, len(logs) + 1):
        told = compare(
            {"other": logs[:blocks]}, alpha=ALPHA, equivalence=EQUIVALENCE, at_any_time=True
        )["other"]
        if told.answer != "cannot tell":
            return told.answer, blocks
    return "cannot tell", len(logs)


def rows(banks: Iterable[tuple[str, Bank]], studies: int) -> Iterator[str]:
    """Give a row for each kind of study and each difference."""
    for name, bank in banks:
        for truth in TRUTHS:
            made = (cut(bank, truth), drawn(bank, truth, studies))
            shares = " | ".join(_shares(one) for one in made)
            yield f"| {name} | {bank.blocks} | {1 / truth - 1:.0%} | {shares} |"


def _shares(told: Told) -> str:
    count = len(told.seconds)
    if not count:
        return "– | – | – | –"
    right, false = (share(told.judged[what], count) for what in (RIGHT, FALSE))
    return f"{right} | {false} | {median(told.seconds):.0f} | {told.answered_s:.0f}"
