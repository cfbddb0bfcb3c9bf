"""Draw studies from recorded blocks: how often they are right, and how long they take.

The bank holds blocks of runs of a fixed length: one that stopped when it was answered would favour
blocks that answer. A study draws whole blocks with replacement, its log ratios with their seconds.
The truth is imposed: the bank's log ratios are moved so that their mean is what was planted. So the
shares speak of noise shaped as recorded, not of a few blocks' mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log

import numpy as np

from harness.analysis.stopping import ALPHA
from harness.stats.answers import EQUIVALENCE
from harness.stats.compare import compare
from tests.bench.time_to_answer.judging import FALSE, RIGHT, judged, named
from tests.bench.time_to_answer.settings import MOST_BLOCKS
from tests.bench.time_to_answer.studies import Record
from tests.stats.losses_truth import bounds

FIRST_LOOK = 4
FEWEST = 8
"""So many blocks a bank has at least: fewer repeat themselves in each study."""


@dataclass(frozen=True)
class Bank:
    """The blocks of one kind of study."""

    logs: np.ndarray
    seconds: np.ndarray
    truth: float


def banked(records: Sequence[Record]) -> Iterator[tuple[str, Bank]]:
    """Gather the blocks of each kind of study."""

    def kind(one: Record) -> str:
        return named(one.setting)

    for name, some in groupby(sorted(records, key=kind), kind):
        runs = list(some)
        pairs = [(one.logs[at], one.block_s[at]) for one in runs for at in one.logs]
        if len(pairs) >= FEWEST:
            logs, seconds = np.array(pairs).T
            truth = runs[0].truth
            yield name, Bank(logs - logs.mean() + log(truth), seconds, truth)


def drawn(bank: Bank, studies: int, seed: int = 1) -> tuple[Counter[str], float]:
    """Give how the answers of drawn studies are judged, and their median seconds."""
    chance = np.random.default_rng(seed)
    told: Counter[str] = Counter()
    took = []
    for _ in range(studies):
        places = chance.integers(0, len(bank.logs), MOST_BLOCKS)
        logs, seconds = bank.logs[places], bank.seconds[places]
        answer, blocks = _answer(list(map(float, logs)))
        told[judged(answer, bank.truth)] += 1
        took.append(float(seconds[:blocks].sum()))
    return told, float(np.median(took))


def _answer(logs: Sequence[float]) -> tuple[str, int]:
    for blocks in range(FIRST_LOOK, len(logs) + 1):
        told = compare(
            {"other": logs[:blocks]}, alpha=ALPHA, equivalence=EQUIVALENCE, at_any_time=True
        )["other"]
        if told.answer != "cannot tell":
            return told.answer, blocks
    return "cannot tell", len(logs)


def rows(records: Sequence[Record], studies: int) -> Iterator[str]:
    """Give a row of shares for each kind of study with enough blocks."""
    for name, bank in banked(records):
        told, seconds = drawn(bank, studies)
        shares = []
        for what in (RIGHT, FALSE):
            low, high = bounds(told[what] / studies, studies)
            shares.append(f"{told[what] / studies:.3f} [{low:.3f}, {high:.3f}]")
        yield f"| {name} | {len(bank.logs)} | {' | '.join(shares)} | {seconds:.0f} |"
