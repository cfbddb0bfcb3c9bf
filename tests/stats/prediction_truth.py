"""Simulate clusters whose truth is known, and predict more devices than were measured on them.

``python -m tests.stats.prediction_truth`` prints the table of docs/method.md, in a minute. Besides
growth by laws there are truths that no smaller count shows: messages that stay hidden up to some
count, a link or a store that is at its end, growth that ends.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log, log2, sqrt

import numpy as np

from harness.stats.growth.growth import MeasuredCount, NetworkFit, check, grow

COUNTS = (1, 2, 4, 8, 16)
ASKED = (32, 64)
TRIALS = 6
SIZE = 1e8
NETWORK = NetworkFit(1e-3, 0.1 / SIZE)
"""What a sweep says where there is one: a step on one device takes 1 s."""


def bytes_sent(p: float) -> float:
    return 2 * (p - 1) / p


def ring(p: float) -> float:
    return 2 * (p - 1)


def exchange(p: float, slower: float = 1.0) -> float:
    """Give the time of an all-reduce on the swept network."""
    return slower * (NETWORK.alpha_s * ring(p) + NETWORK.beta_s * SIZE * bytes_sent(p))


def hidden_until(end: float, bend: float) -> Callable[[float], float]:
    """Give a step that grows by ``bend`` of itself with each doubling, once overlap has ended."""
    return lambda p: 1 + bend * max(0.0, p / end - 1)


@dataclass(frozen=True)
class Shape:
    """A truth: the seconds of a step by the number of devices."""

    name: str
    seconds: Callable[[float], float]
    strong: bool = False
    swept: bool = False
    """Whether a sweep of all-reduces, of the same truth, stands in the run."""


SHAPES = (
    Shape("bytes", lambda p: 1 + 0.2 * bytes_sent(p)),
    Shape("messages around a ring", lambda p: 1 + 0.005 * ring(p) + 0.1 * bytes_sent(p)),
    Shape("messages down a tree", lambda p: 1 + 0.04 * log2(p)),
    Shape("flat", lambda p: 1.0),
    Shape("overlap ends at 8", hidden_until(8, 0.5)),
    Shape("overlap ends at 16, a link of half the rate", hidden_until(16, 0.5)),
    Shape("overlap ends at 16, all that was hidden", hidden_until(16, 1.0)),
    Shape("overlap ends at 32", hidden_until(32, 1.0)),
    Shape("a shared store at its end with 12", lambda p: max(1.0, p / 12)),
    Shape("a second switch from 17 on", lambda p: 1 + 0.1 * bytes_sent(p) * (1 if p <= 16 else 4)),
    Shape("another algorithm from 17 on", lambda p: (1 + 0.02 * log2(p)) * (1 if p <= 16 else 1.5)),
    Shape("waiting for the slowest", lambda p: 1 + 0.05 * sqrt(2 * log(p))),
    Shape("growth that ends at 8", lambda p: 1 + 0.1 * log2(min(p, 8))),
    Shape("a power law", lambda p: exp(0.15 * log(p))),
    Shape("the rate of all falls from 16 on", lambda p: max(1.0, (p / 8) ** 1.5)),
    Shape("contention", lambda p: 1 + 0.0005 * p * p),
    Shape("a cache that fits from 4 on", lambda p: (1.2 if p < 4 else 1) + 0.02 * log2(p)),
    Shape("strong: Amdahl", lambda p: 0.03 + 0.97 / p, strong=True),
    Shape("strong: and messages", lambda p: 0.02 + 0.98 / p + 0.001 * ring(p), strong=True),
    Shape(
        "strong: overlap ends at 16",
        lambda p: max(1 / p, 1 / 16 * p / 16) if p > 16 else 1 / p,
        strong=True,
    ),
    Shape("swept: nothing hides", lambda p: 1 + exchange(p), swept=True),
    Shape("swept: overlap ends at 16", lambda p: 1 + (exchange(p) if p > 16 else 0), swept=True),
    Shape(
        "swept: a network half as fast from 17 on",
        lambda p: 1 + exchange(p, 1 if p <= 16 else 2),
        swept=True,
    ),
)


@dataclass(frozen=True)
class Told:
    """What came of the predictions of one count: shares of the simulated clusters."""

    covered: float
    """Of those with an interval, that held the truth."""
    refused: float
    disbelieved: float
    """Whose check said not to believe it."""
    misled: float
    """Whose interval did not hold the truth, though the check had passed."""
    width: float
    """Its end over its beginning, the median."""


def predictions(shape: Shape, devices: int, clusters: int, *, seed: int = 4) -> Told:
    """Measure so many clusters with 1 % of noise, and predict so many devices on each."""
    chance, truth = np.random.default_rng(seed), shape.seconds(devices)
    refused = disbelieved = held = misled = 0
    widths: list[float] = []
    network, size = (NETWORK, SIZE) if shape.swept else (None, 0.0)
    for _ in range(clusters):
        counts = [
            MeasuredCount(p, tuple(shape.seconds(p) * chance.lognormal(0, 0.01, TRIALS)))
            for p in COUNTS
        ]
        told = grow(counts, strong=shape.strong, network=network, size=size)
        tested = check(counts, strong=shape.strong, network=network, size=size)
        assert told is not None
        assert tested is not None
        prediction = told.predict(devices)
        passed = tested.holds is None or bool(tested.holds)
        disbelieved += not passed
        if prediction.low is None or prediction.high is None:
            refused += 1
            continue
        widths.append(prediction.high / prediction.low)
        holds = prediction.low <= truth <= prediction.high
        held += holds
        misled += passed and not holds
    told_of = clusters - refused
    return Told(
        covered=held / told_of if told_of else 1.0,
        refused=refused / clusters,
        disbelieved=disbelieved / clusters,
        misled=misled / clusters,
        width=float(np.median(widths)) if widths else float("nan"),
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--clusters", type=int, default=200)
    clusters = parser.parse_args().clusters
    print("| truth | devices | covered | refused | check failed | misled | end / beginning |")
    print("|---|---|---|---|---|---|---|")
    for shape in SHAPES:
        for devices in ASKED:
            told = predictions(shape, devices, clusters)
            print(
                f"| {shape.name} | {devices} | {told.covered:.3f} | {told.refused:.3f} | "
                f"{told.disbelieved:.3f} | {told.misled:.3f} | {told.width:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
