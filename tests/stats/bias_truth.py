"""Simulate studies by turns that leave something behind: is the ratio of rates alone still held.

``python -m tests.stats.bias_truth`` prints the table of docs/method.md, in minutes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from math import exp, log, sqrt
from statistics import mean, median

from harness.stats.answers import answer
from harness.stats.compare import compare
from harness.stats.turn_bias import TurnBias, fading, turn_bias, widened
from harness.worker.windows.turns import SETTLING_S

Noise = Callable[[random.Random], float]
BLOCKS, ROUNDS, TURN_S, CHECKS = 6, 7, 0.7, 24
NONE = TurnBias(0.0, 0.0, 0.0, 0)


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
class Left:
    """What another trial's turn leaves behind in a cell's rate, and for how long it lasts."""

    share: float
    lasting_s: float

    def between(self, begin_s: float, end_s: float) -> float:
        """Give the mean change of the rate's logarithm in a part of a turn."""
        if not self.share or not self.lasting_s:
            return 0.0
        gone = exp(-begin_s / self.lasting_s) - exp(-end_s / self.lasting_s)
        return -self.share * self.lasting_s / (end_s - begin_s) * gone


Study = tuple[float, float]
"""Ends of an interval of the log ratio."""


@dataclass(frozen=True)
class Seen:
    """Shares of studies whose interval holds the ratio alone, whose answer is wrong or right."""

    covered: float
    false: float
    found: float
    width: float


def settled(
    chance: random.Random, noise: Noise, cells: tuple[Left, Left], difference: float
) -> Study:
    """Measure as trials do: what follows the time that a turn settles counts."""
    middle, end = SETTLING_S + TURN_S / 2, SETTLING_S + TURN_S
    whole = _both(cells, SETTLING_S, end)
    blocks = [
        difference
        + whole[0]
        - whole[1]
        + chance.gauss(0, 0.005)
        + median(noise(chance) for _ in range(ROUNDS))
        for _ in range(BLOCKS)
    ]
    early, late = _both(cells, SETTLING_S, middle), _both(cells, middle, end)
    changes = [  # halves of a turn scatter by more than turns, as each is shorter
        [first - second + sqrt(2) * noise(chance) for _ in range(BLOCKS * ROUNDS)]
        for first, second in zip(early, late, strict=True)
    ]
    found = [fading(own) or NONE for own in changes]
    ratio, low, high = _interval(blocks)
    if found == [NONE, NONE]:
        return low, high
    return widened(ratio, low, high, cell=found[0], reference=found[1])


def checked(
    chance: random.Random, noise: Noise, cells: tuple[Left, Left], difference: float
) -> Study:
    """Measure all of a turn, and widen by what checks, second turns of a trial, tell."""
    begin, end = (_both(cells, 0.0, TURN_S), _both(cells, TURN_S, 2 * TURN_S))
    blocks = []
    for _ in range(BLOCKS):
        apart = difference + begin[0] - begin[1] + chance.gauss(0, 0.005)
        blocks.append(apart + median(noise(chance) for _ in range(ROUNDS)))
    both = [
        turn_bias([before - after + noise(chance) for _ in range(CHECKS)])
        for before, after in zip(begin, end, strict=True)
    ]
    assert both[0] is not None
    assert both[1] is not None
    return widened(*_interval(blocks), cell=both[0], reference=both[1])


def _both(cells: tuple[Left, Left], begin_s: float, end_s: float) -> tuple[float, float]:
    return cells[0].between(begin_s, end_s), cells[1].between(begin_s, end_s)


def _interval(blocks: list[float]) -> tuple[float, float, float]:
    told = compare({"cell": blocks}, alpha=0.05, equivalence=0.03, seed=1)["cell"]
    assert told.ratio is not None
    assert told.low is not None
    assert told.high is not None
    return log(told.ratio), log(told.low), log(told.high)


POPULATIONS: dict[str, Callable[[random.Random], tuple[Left, Left]]] = {
    "nothing": lambda chance: (Left(0, 0), Left(0, 0)),
    "as measured": lambda chance: (_measured(chance), _measured(chance)),
    "5 % for 0.1 s, of one cell": lambda chance: (Left(0, 0), Left(0.05, 0.1)),
    "20 % for 0.1 s, of one cell": lambda chance: (Left(0, 0), Left(0.2, 0.1)),
    "5 % for 0.5 s, of one cell": lambda chance: (Left(0, 0), Left(0.05, 0.5)),
    "20 % for 0.5 s, of one cell": lambda chance: (Left(0, 0), Left(0.2, 0.5)),
    "5 % for 2 s, of one cell": lambda chance: (Left(0, 0), Left(0.05, 2.0)),
}


def _measured(chance: random.Random) -> Left:
    """Draw what ``tinycnn`` showed: 10 to 40 % at first, half gone after 10 to 30 ms."""
    return Left(chance.uniform(0.1, 0.4), chance.uniform(0.015, 0.045))


def seen(
    way: Callable[[random.Random, Noise, tuple[Left, Left], float], Study],
    noise: Noise,
    population: Callable[[random.Random], tuple[Left, Left]],
    *,
    difference: float = 0.0,
    studies: int,
    seed: int = 1,
) -> Seen:
    """Simulate studies of two cells whose rates alone differ by so much (of logarithms)."""
    chance = random.Random(seed)
    ends = [way(chance, noise, population(chance), difference) for _ in range(studies)]
    words = [answer(low, high, 0.0, 0.05, 0.03)[0] for low, high in ends]
    right = "faster" if difference > 0 else "slower" if difference < 0 else "same"
    return Seen(
        covered=mean(low <= difference <= high for low, high in ends),
        false=mean(word in {"faster", "slower"} and word != right for word in words),
        found=mean(word == right for word in words),
        width=median(high - low for low, high in ends),
    )


def main() -> None:
    """Print the table."""
    print(
        "| turns side by side | left behind | checks: covered | false | width | 5 % found "
        "| settled: covered | false | width | 5 % found |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for (name, noise), (left, population) in product(MACHINES.items(), POPULATIONS.items()):
        told = []
        for way in (checked, settled):
            equal = seen(way, noise, population, studies=1000)
            apart = seen(way, noise, population, difference=log(1.05), studies=500)
            told.append(
                f"{equal.covered:.3f} | {equal.false:.3f} | {equal.width:.3f} | {apart.found:.3f}"
            )
        print(f"| {name} | {left} | {' | '.join(told)} |", flush=True)


if __name__ == "__main__":
    main()
