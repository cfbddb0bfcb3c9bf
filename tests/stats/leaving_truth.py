"""Count what it costs that answered cells leave a study, and what it saves.

``python -m tests.stats.leaving_truth`` prints the table of docs/method.md, in half an hour of one
core. Each study has the looks that a plan declares for thirty blocks; a cell that is answered at
one leaves with the blocks that it has, and is one of the family at later looks all the same.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from math import log

import numpy as np

from harness.stats.answers import ALPHA, EQUIVALENCE, FEWEST_BLOCKS
from harness.stats.compare import compare, declared_looks
from tests.stats.simulator import NOISE, Truth, draw

MOST = 30
LOOKS = declared_looks(FEWEST_BLOCKS, MOST)


@dataclass(frozen=True)
class Setting:
    """Studies of one kind."""

    truth: Truth
    is_limited: bool = False
    """Whether a budget ends it: as many trials as twelve blocks of all cells take."""


def _equal(cells: int, tail: str, noise: float = NOISE, *, is_limited: bool = False) -> Setting:
    return Setting(Truth((0.0,) * cells, MOST, noise, tail=tail), is_limited)


SETTINGS = {
    "5 equal, normal": _equal(5, "normal"),
    "5 equal, normal, 3 % noise": _equal(5, "normal", 0.03),
    "5 equal, heavy": _equal(5, "heavy", 0.02),
    "5 equal, two clocks": _equal(5, "clocks"),
    "5 equal, tenfold apart in noise": _equal(5, "uneven", 0.03),
    "5 equal, drift": _equal(5, "drift", 0.02),
    "5 equal, one skewed": _equal(5, "one skewed"),
    "19 equal, normal, 3 % noise": _equal(19, "normal", 0.03),
    "5 equal, 3 % noise, a budget": _equal(5, "normal", 0.03, is_limited=True),
    "5 equal, two clocks, a budget": _equal(5, "clocks", is_limited=True),
    "3 equal, 3 of 10 %, 3 % noise": Setting(Truth((0.0,) * 3 + (log(1.1),) * 3, MOST, 0.03)),
    "2, 5 and 10 %, 3 % noise": Setting(Truth((log(1.02), log(1.05), log(1.1)), MOST, 0.03)),
}


@dataclass(frozen=True)
class Told:
    """Shares of studies and cells, and trials of a study."""

    news: float
    """Studies in which any equal cell was called faster or slower, or another the wrong way."""
    right: float
    """Cells called what they are; small differences are the same as well as what they are."""
    trials: float
    """Trials of a study, the reference's too."""
    all_stay: float
    """Trials, had each cell stayed until the last was answered."""


def study(setting: Setting, chance: np.random.Generator) -> tuple[dict[int, str], dict[int, int]]:
    """Carry one study out; give the answers, and the blocks that each cell and the whole took."""
    logs = draw(setting.truth, chance)
    cells = len(logs)
    answers: dict[int, str] = {}
    took: dict[int, int] = {}
    left, before = float((cells + 1) * 12), 0
    for look in LOOKS:
        end = look
        if setting.is_limited:
            each = cells - len(answers) + 1
            end = min(look, before + int(left // each))
            left -= each * (end - before)
        rows = {str(at): list(row[: took.get(at, end)]) for at, row in enumerate(logs)}
        padded = {at: [*row, *[None] * (end - len(row))] for at, row in rows.items()}
        for name, one in compare(padded, alpha=ALPHA / len(LOOKS)).items():
            if int(name) not in answers and one.answer != "cannot tell":
                answers[int(name)], took[int(name)] = one.answer, end
        before = end
        if len(answers) == cells or end < look:
            break
    return answers, {at: took.get(at, before) for at in range(cells)}


def tell(name: str, studies: int) -> Told:
    """Carry many studies out."""
    setting = SETTINGS[name]
    chance = np.random.default_rng((list(SETTINGS).index(name), 1))
    margin = log(1 + EQUIVALENCE)
    news = right = trials = all_stay = 0
    for _ in range(studies):
        answers, took = study(setting, chance)
        wrong = False
        for at, effect in enumerate(setting.truth.effects):
            told = answers.get(at, "cannot tell")
            way = "faster" if effect > 0 else "slower"
            wrong |= told in ("faster", "slower") and (not effect or told != way)
            right += told == "same" if abs(effect) <= margin else False
            right += bool(effect) and told == way
        news += wrong
        last = max(took.values())
        trials += sum(took.values()) + last
        all_stay += (len(took) + 1) * last
    each = studies * len(setting.truth.effects)
    return Told(news / studies, right / each, trials / studies, all_stay / studies)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--studies", type=int, default=10_000)
    studies = parser.parse_args().studies
    for name in SETTINGS:
        told = tell(name, studies)
        figures = f"{told.news:.3f} | {told.right:.3f} | {told.trials:.1f} | {told.all_stay:.1f}"
        sys.stdout.write(f"| {name} | {figures} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
