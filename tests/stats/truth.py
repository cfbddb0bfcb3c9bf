"""This file simulates studies whose truth is known, and counts how often the method is wrong.

``python -m tests.stats.truth --studies 10000`` prints the table that docs/method.md records;
the tests run the same functions with a few hundred studies.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from harness.stats.answers import ALPHA
from harness.stats.compare import compare
from harness.stats.estimate import LEVEL, median_interval
from harness.stats.repeat import decide, schedule
from harness.stats.steady import begin, describe
from harness.stats.unpaired import changes
from harness.stats.verdict import SEVERITY, judge, worst
from tests.stats.simulator import (
    KINDS,
    NOISE,
    RECORDED,
    Truth,
    trials,
    true_median,
    windows,
)

FULL = 10_000
"""So many studies leave Monte-Carlo error out of account in coverage."""


@dataclass(frozen=True)
class Tally:
    """What happened over many studies of one truth."""

    studies: int
    rejected: float
    """Share of studies in which the exact test rejected any equal cell: family-wise error."""
    false_news: float
    """Share of studies that called any equal cell faster or slower, or any other the wrong way."""
    power: float
    """Share of truly different cells that were called so, the right way."""
    same: float
    """Share of truly equal cells called the same."""
    covered: float
    """Share of studies whose intervals all held the truth."""
    width: float
    """Median width of an interval."""
    medians: float
    """Share of studies in which the reference's own interval (of trials) held its true median."""


def tally(truth: Truth, studies: int, seed: int = 1) -> Tally:
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
        rejected / studies,
        false / studies,
        found / max(1, studies * len(different)),
        same / max(1, studies * len(equal)),
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
    "19 cells 2 % faster, n 10": Truth((log(1.02),) * 19, blocks=10),
}


def tally_runs(effect: float, studies: int, seed: int = 1, cells: int = 19) -> Tally:
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
        false += not effect and any(news)
        found += sum(news) if effect else 0
        same += 0 if effect else sum(one.answer == "same" for one in told)
        ends = [(log(one.low or 1), log(one.high or 1)) for one in told]
        covered += all(low <= effect <= high for low, high in ends)
        widths += [high - low for low, high in ends]
    each = studies * cells
    return Tally(
        studies,
        rejected / studies,
        false / studies,
        found / each,
        same / each,
        covered / studies,
        float(np.median(widths)),
        0.0,
    )


def tally_adaptive(width: float, studies: int, seed: int = 1) -> tuple[float, float]:
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


def verdicts(kind: str, trials: int, seed: int = 1) -> dict[str, float]:
    """Count which verdicts many trials of a kind get."""
    chance = np.random.default_rng(seed)
    found = dict.fromkeys(SEVERITY, 0.0)
    for _ in range(trials):
        times = windows(kind, chance)
        steady = begin(times)
        findings = judge(steady, describe(times[steady.start :]))
        found[worst(findings)] += 1 / trials
    return found


def main() -> int:
    """Print the table, and whether it keeps what was promised."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--only", default="")
    wanted = parser.parse_args()
    broken = []
    lines = [
        "| study | family-wise error | false news | power | same | covered | width | medians |",
        "|---|---|---|---|---|---|---|---|",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    for name, truth in TRUTHS.items():
        if wanted.only in name:
            told = tally(truth, wanted.studies)
            _row(name, told)
            broken += [f"{name}: {what}" for what in promises_broken(truth, told)]
    for effect, name in ((0.0, "two equal runs, 19 cells"), (log(0.95), "two runs, 5 % slower")):
        if wanted.only in name:
            _row(name, tally_runs(effect, max(100, wanted.studies // 20)))
    if not wanted.only:
        for width in (0.01, 0.02, 0.05):
            held, blocks = tally_adaptive(width, wanted.studies // 5)
            sys.stdout.write(f"until {width:.0%}: {held:.3f} held the truth, {blocks:.1f} blocks\n")
        sys.stdout.write("\n| windows of a trial | valid | noisy | unsteady |\n|---|---|---|---|\n")
        for kind in KINDS:
            found = verdicts(kind, max(100, wanted.studies // 5))
            shares = [found[name] for name in ("valid", "noisy", "unsteady")]
            sys.stdout.write(f"| {kind} | {' | '.join(f'{share:.3f}' for share in shares)} |\n")
            if kind in MUST_BE_UNSTEADY and found["unsteady"] < 0.9:
                broken.append(f"{kind}: unsteady in {found['unsteady']:.1%}")
    sys.stdout.write("\n".join(("", "Not kept:", *broken) if broken else ("", "All kept.")) + "\n")
    return 1 if broken else 0


MUST_BE_UNSTEADY = ("drift of 10 %", "wandering by 5 %", "two clocks 8 % apart")


def promises_broken(truth: Truth, told: Tally) -> list[str]:
    """Say what the method promised of studies like this and did not keep.

    The error is promised whatever disturbs the machine: a block is shuffled, so that it treats all
    cells alike. Coverage is promised for trials that are exchangeable, and told for the others.
    """
    broken = []
    if told.rejected > ALPHA + 3 * monte_carlo_error(ALPHA, told.studies):
        broken.append(f"family-wise error {told.rejected:.3f}")
    slack = 3 * monte_carlo_error(LEVEL, told.studies) if told.studies < FULL else 0.0
    shares = {"intervals of ratios": told.covered}
    if truth.tail != "nodes":  # a run sees few nodes: its median is theirs, not all nodes'
        shares["interval of a median"] = told.medians
    for what, share in shares.items():
        exchangeable = truth.tail not in ("drift", "autocorrelation", "clocks")
        if exchangeable and share < LEVEL - 0.01 - slack:
            broken.append(f"{what} held the truth in {share:.3f}")
    return broken


def _row(name: str, told: Tally) -> None:
    figures = (
        told.rejected,
        told.false_news,
        told.power,
        told.same,
        told.covered,
        told.width,
        told.medians,
    )
    sys.stdout.write(f"| {name} | {' | '.join(f'{figure:.3f}' for figure in figures)} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
