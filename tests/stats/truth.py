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
from numpy.typing import NDArray

from harness.stats.answers import ALPHA
from harness.stats.compare import compare
from harness.stats.estimate import median_interval
from harness.stats.repeat import decide, schedule
from harness.stats.steady import begin, describe
from harness.stats.unpaired import changes
from harness.stats.verdict import SEVERITY, judge, worst

Array = NDArray[np.float64]
NOISE = 0.01


@dataclass(frozen=True)
class Truth:
    """A study: log ratios per cell, noise of one trial's logarithm, and what disturbs it."""

    effects: tuple[float, ...]
    blocks: int = 6
    noise: float = NOISE
    block_noise: float = 0.03
    """What the cells of a block have in common; pairing removes it."""
    tail: str = "normal"
    """normal, bursts (one trial in ten 10 % slower), uneven (cells differ tenfold in noise)."""


def draw(truth: Truth, chance: np.random.Generator) -> Array:
    """Draw log(cell / reference), cells by blocks."""
    cells = len(truth.effects) + 1
    scale = np.full((cells, 1), truth.noise)
    if truth.tail == "uneven":
        scale = truth.noise * np.logspace(-0.5, 0.5, cells)[:, None]
    logs = scale * chance.standard_normal((cells, truth.blocks))
    if truth.tail == "bursts":
        logs -= 0.1 * (chance.random((cells, truth.blocks)) < 0.1)
    logs += truth.block_noise * chance.standard_normal(truth.blocks)
    return logs[1:] - logs[0] + np.array(truth.effects)[:, None]


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


def tally(truth: Truth, studies: int, seed: int = 1) -> Tally:
    """Run many studies of one truth."""
    chance = np.random.default_rng(seed)
    rejected, false, covered, found, same = 0, 0, 0, 0, 0
    widths: list[float] = []
    different = [index for index, effect in enumerate(truth.effects) if effect]
    equal = [index for index, effect in enumerate(truth.effects) if not effect]
    for _ in range(studies):
        data = draw(truth, chance)
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
    )


def monte_carlo_error(share: float, studies: int) -> float:
    """Give the standard error of a simulated share."""
    return sqrt(share * (1 - share) / studies)


TRUTHS = {
    "19 equal cells, n 6": Truth((0.0,) * 19),
    "19 equal cells, n 6, bursts": Truth((0.0,) * 19, tail="bursts"),
    "19 equal cells, n 6, uneven noise": Truth((0.0,) * 19, tail="uneven"),
    "19 equal cells, n 10": Truth((0.0,) * 19, blocks=10),
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


def windows(kind: str, chance: np.random.Generator, count: int = 300) -> Array:
    """Draw the step times of one trial that is disturbed in a known way."""
    noise = 0.01 * chance.standard_normal(count)
    if kind == "drift of 10 %":
        noise += np.linspace(0, 0.1, count)
    elif kind == "drift of 2 %":
        noise += np.linspace(0, 0.02, count)
    elif kind == "wandering by 5 %":
        level = np.zeros(count)
        for index in range(1, count):
            level[index] = 0.98 * level[index - 1] + 0.01 * chance.standard_normal()
        noise += level
    elif kind == "two clocks 8 % apart":
        noise += 0.08 * (chance.random(count) < 0.4)
    elif kind == "rhythm of 8 %":
        noise += 0.08 * (np.arange(count) % 20 < 10)
    elif kind == "bursts":
        noise += 0.2 * (chance.random(count) < 0.02)
    elif kind == "heavy tails":
        noise = 0.01 * chance.standard_t(3, count)
    elif kind == "warm-up of 30 windows":
        noise[:30] += 0.3
    return 0.02 * np.exp(noise)


KINDS = (
    "quiet",
    "bursts",
    "heavy tails",
    "warm-up of 30 windows",
    "drift of 2 %",
    "drift of 10 %",
    "wandering by 5 %",
    "two clocks 8 % apart",
    "rhythm of 8 %",
)


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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--only", default="")
    wanted = parser.parse_args()
    lines = [
        "| noise 1 % a trial | family-wise error | false news | power | same | covered | width |",
        "|---|---|---|---|---|---|---|",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    for name, truth in TRUTHS.items():
        if wanted.only in name:
            _row(name, tally(truth, wanted.studies))
    for effect, name in ((0.0, "two equal runs, 19 cells"), (log(0.95), "two runs, 5 % slower")):
        if wanted.only in name:
            _row(name, tally_runs(effect, wanted.studies))
    for width in (0.01, 0.02, 0.05):
        held, blocks = tally_adaptive(width, wanted.studies)
        sys.stdout.write(f"until {width:.0%}: {held:.3f} held the truth, {blocks:.1f} blocks\n")
    sys.stdout.write("\n| windows of a trial | valid | noisy | unsteady |\n|---|---|---|---|\n")
    for kind in KINDS:
        shares = " | ".join(f"{share:.3f}" for share in verdicts(kind, wanted.studies).values())
        sys.stdout.write(f"| {kind} | {shares} |\n")


def _row(name: str, told: Tally) -> None:
    figures = (told.rejected, told.false_news, told.power, told.same, told.covered, told.width)
    sys.stdout.write(f"| {name} | {' | '.join(f'{figure:.3f}' for figure in figures)} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
