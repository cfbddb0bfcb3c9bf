"""Simulate studies whose truth is known, and count how often the method is wrong.

``make truth`` counts over 10,000 studies of each kind (``truth_table.py``); the tests run the same
functions with a few hundred.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from harness.stats.answers import ALPHA
from harness.stats.between_runs.unpaired import changes
from harness.stats.compare import compare
from harness.stats.estimate import LEVEL, median_interval
from harness.stats.repetition.repeat import decide, schedule
from harness.stats.windows.steady import begin, describe
from harness.verdicts.thresholds import SEVERITY, judge, worst
from tests.stats.simulator import (
    NOISE,
    RECORDED,
    TAILS,
    Truth,
    trials,
    true_median,
    windows,
)

Seed = int | Sequence[int]
FULL = 10_000
"""So many studies leave Monte-Carlo error out of account in coverage."""


@dataclass(frozen=True)
class Tally:
    """What happened over many studies of one truth."""

    studies: int
    rejected: float | None
    """Share of studies in which the test rejected any equal cell: family-wise error."""
    false_news: float
    """Share of studies that called any equal cell faster or slower, or any other the wrong way."""
    power: float | None
    """Share of truly different cells that were called so, the right way."""
    same: float | None
    """Share of truly equal cells called the same."""
    covered: float
    """Share of studies whose intervals all held the truth."""
    width: float
    """Median width of an interval."""
    medians: float | None
    """Share of studies in which the reference's own interval (of trials) held its true median."""


def tally(truth: Truth, studies: int, seed: Seed = 1) -> Tally:
    """Run many studies of one truth."""
    chance = np.random.default_rng(seed)
    rejected, false, covered, found, same = 0, 0, 0, 0, 0
    widths: list[float] = []
    different = [index for index, effect in enumerate(truth.effects) if effect]
    equal = [index for index, effect in enumerate(truth.effects) if not effect]
    held = 0
    middle = true_median(truth)
    for _ in range(studies):
        logs = trials(truth, chance)
        data = logs[1:] - logs[0]
        told = median_interval(list(logs[0]))
        held += told is not None and told.low <= middle <= told.high
        answers = list(compare({str(i): list(row) for i, row in enumerate(data)}).values())
        right = ["faster" if truth.effects[i] > 0 else "slower" for i in different]
        found += sum(answers[i].answer == word for i, word in zip(different, right, strict=True))
        same += sum(answers[i].answer == "same" for i in equal)
        rejected += any((answers[i].p or 1) <= ALPHA for i in equal)
        wrong = any(answers[i].answer in ("faster", "slower") for i in equal)
        opposite = {"faster": "slower", "slower": "faster"}
        wrong |= any(
            answers[i].answer == opposite[word] for i, word in zip(different, right, strict=True)
        )
        false += wrong
        ends = [(log(a.low or 1), log(a.high or 1)) for a in answers]
        covered += all(
            low <= effect <= high for (low, high), effect in zip(ends, truth.effects, strict=True)
        )
        widths += [high - low for low, high in ends]
    return Tally(
        studies,
        rejected / studies if equal else None,
        false / studies,
        found / (studies * len(different)) if different else None,
        same / (studies * len(equal)) if equal else None,
        covered / studies,
        float(np.median(widths)),
        held / studies,
    )


def monte_carlo_error(share: float, studies: int) -> float:
    """Give the standard error of a simulated share."""
    return sqrt(share * (1 - share) / studies)


TRUTHS = {
    "19 equal cells, n 6": Truth((0.0,) * 19),
    "19 equal cells, n 6, bursts": Truth((0.0,) * 19, tail="bursts"),
    "19 equal cells, n 6, uneven noise": Truth((0.0,) * 19, tail="uneven"),
    "19 equal cells, n 10": Truth((0.0,) * 19, blocks=10),
    **{
        f"5 equal cells, n 6, {tail}": Truth((0.0,) * 5, tail=tail)
        for tail in ("drift", "autocorrelation", "clocks", "nodes")
    },
    **{
        f"1 equal cell, n 6, noise as recorded: {name}": Truth(
            (0.0,), noise=one["trial_noise"], block_noise=one["block_noise"]
        )
        for name, one in RECORDED["run"].items()
    },
    "3 equal cells, n 6": Truth((0.0,) * 3),
    "1 equal cell, n 6": Truth((0.0,)),
    "19 cells 5 % slower, n 6": Truth((log(0.95),) * 19),
    "9 equal, 10 cells 5 % slower, n 6": Truth((0.0,) * 9 + (log(0.95),) * 10),
    "9 equal, 10 cells half as fast, n 6": Truth((0.0,) * 9 + (log(0.5),) * 10),
    "19 cells 5 % slower, n 6, noise of a ratio 1 %": Truth(
        (log(0.95),) * 19, noise=NOISE / 2**0.5
    ),
    "3 cells 5 % faster, n 6": Truth((log(1.05),) * 3),
    "3 cells 2 % faster, n 6": Truth((log(1.02),) * 3),
    "3 cells 2 % faster, n 10": Truth((log(1.02),) * 3, blocks=10),
    "19 cells 2 % faster, n 6": Truth((log(1.02),) * 19),
    "19 cells 2 % faster, n 10": Truth((log(1.02),) * 19, blocks=10),
}
NULLS = {
    f"{tail}, {cells} equal cells, n {blocks}": Truth((0.0,) * cells, blocks=blocks, tail=tail)
    for tail in TAILS
    for cells in (1, 5, 19)
    for blocks in (6, 7, 10)
}
"""Where no cell differs: what disturbs, how many are compared, in how many blocks."""


def tally_runs(effect: float, studies: int, seed: Seed = 1, cells: int = 19) -> Tally:
    """Compare two runs of six blocks whose cells all differ by ``effect``."""
    chance = np.random.default_rng(seed)
    rejected, false, found, same, covered = 0, 0, 0, 0, 0
    widths: list[float] = []
    for _ in range(studies):
        tables = []
        for shift in (0.0, effect):
            common = NOISE * chance.standard_normal(6)
            data = shift + NOISE * chance.standard_normal((cells, 6)) + common
            tables.append({str(index): list(row) for index, row in enumerate(data)})
        told = list(changes(*tables).values())
        news = [one.answer in ("faster", "slower") for one in told]
        rejected += not effect and any((one.p or 1) <= ALPHA for one in told)
        opposite = "slower" if effect > 0 else "faster"
        false += any(one.answer == opposite for one in told) if effect else any(news)
        found += sum(news) if effect else 0
        same += 0 if effect else sum(one.answer == "same" for one in told)
        ends = [(log(one.low or 1), log(one.high or 1)) for one in told]
        covered += all(low <= effect <= high for low, high in ends)
        widths += [high - low for low, high in ends]
    each = studies * cells
    return Tally(
        studies,
        None if effect else rejected / studies,
        false / studies,
        found / each if effect else None,
        None if effect else same / each,
        covered / studies,
        float(np.median(widths)),
        None,
    )


def tally_adaptive(width: float, studies: int, seed: Seed = 1) -> tuple[float, float]:
    """Repeat until narrow as declared; give how often the interval holds the truth, and blocks."""
    chance = np.random.default_rng(seed)
    declared = schedule(6, 30)
    held, blocks = 0, 0
    for _ in range(studies):
        rates: list[float] = []
        while True:
            rates.append(float(np.exp(NOISE * chance.standard_normal())))
            if decide({"cell": rates}, width=width, plan=declared, done=len(rates)).stop:
                break
        told = median_interval(rates, declared.level)
        assert told is not None
        held += told.low <= 1 <= told.high
        blocks += len(rates)
    return held / studies, blocks / studies


def verdicts(kind: str, trials: int, seed: Seed = 1) -> dict[str, float]:
    """Count which verdicts many trials of a kind get."""
    chance = np.random.default_rng(seed)
    found = dict.fromkeys(SEVERITY, 0.0)
    for _ in range(trials):
        times = windows(kind, chance)
        steady = begin(times)
        findings = judge(steady, describe(times[steady.start :]))
        found[worst(findings)] += 1 / trials
    return found


MUST_BE_UNSTEADY = (
    "drift of 10 %",
    "wandering by 5 %",
    "two clocks 8 % apart",
    "a neighbour that comes after 30 % and stays",
    "one switch of the clock by 8 %",
)
POWER = {"19 cells 5 % slower, n 6": 0.98, "19 cells 2 % faster, n 6": 0.4}
"""What share of different cells must be found in some studies."""


def promises_broken(told: Tally, truth: Truth | None = None) -> list[str]:
    """Say what the method promised of studies like this and did not keep.

    The error is promised whatever disturbs the machine: a block is shuffled, so that it treats all
    cells alike. Coverage is promised for trials that are exchangeable, and told for the others.
    ``truth`` is None where two runs were compared, whose trials are.
    """
    broken: list[str] = []
    if truth is not None and truth.tail == "one skewed":
        return broken  # its mean and its median differ: no test of signs promises anything here
    most = ALPHA + 3 * monte_carlo_error(ALPHA, told.studies)
    for what, share in (("family-wise error", told.rejected), ("false news", told.false_news)):
        if share is not None and share > most:
            broken.append(f"{what} {share:.4f}")
    slack = 3 * monte_carlo_error(LEVEL, told.studies) if told.studies < FULL else 0.0
    shares: dict[str, float | None] = {"intervals of ratios": told.covered}
    tail = "normal" if truth is None else truth.tail
    if tail != "nodes":  # a run sees few nodes: its median is theirs, not all nodes'
        shares["interval of a median"] = told.medians
    for what, share in shares.items():
        exchangeable = tail not in ("drift", "autocorrelation", "clocks")
        if exchangeable and share is not None and share < LEVEL - 0.01 - slack:
            broken.append(f"{what} held the truth in {share:.4f}")
    return broken
