"""Ask whether shuffling files, and samples within a buffer, harms what is learnt.

``python -m tests.bench.shuffle_quality [SEEDS]``: the claim of Lee et al. (2021), on a regression
that can be learnt. A small network is trained twice from each seed's weights: in the order of
``shuffle = "global"`` and of ``"file"`` with a buffer of four files out of 64. What differs is the
order alone, and it is the one that every reader here delivers and is audited for.

Two one-sided t-tests (Schuirmann 1987) of the logarithm of the ratio of both validation losses,
paired by seed, at 5 % each, which is a 90 % interval within the margin: losses are taken for equal
where they are proved to be less than 5 % apart. So it must be where the samples of a file are
independent, as the paper's and our made ones are. The control is files whose samples are alike:
there the order matters, a buffer of a few files does harm, and the test has to see it.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.worker.input.order import epoch_order

MARGIN = math.log(1.05)
SEEDS = 30
FILES, HELD, VALIDATION = 64, 32, 2048
BUFFER = 4 * HELD
BATCH, EPOCHS = 32, 24
INPUTS, HIDDEN, TARGETS = 16, 48, 4
RATE, MOMENTUM = 0.02, 0.9

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Answer:
    """What two one-sided tests say of a ratio."""

    ratio: float
    low: float
    high: float

    @property
    def is_equivalent(self) -> bool:
        return max(abs(math.log(self.low)), abs(math.log(self.high))) < MARGIN

    def __str__(self) -> str:
        found = "equal" if self.is_equivalent else "not shown to be equal"
        return (
            f"{self.ratio:.4f} [{self.low:.4f}, {self.high:.4f}], 90 %: {found} "
            f"within {100 * (math.exp(MARGIN) - 1):.0f} %"
        )


def answered(ratios: list[float]) -> Answer:
    """Test whether losses, paired by seed, differ by less than the margin."""
    from scipy.stats import t

    logs = np.log(ratios)
    half = t.ppf(0.95, len(logs) - 1) * logs.std(ddof=1) / math.sqrt(len(logs))
    middle = logs.mean()
    return Answer(*(math.exp(one) for one in (middle, middle - half, middle + half)))


def samples(seed: int, *, alike: bool) -> tuple[Array, Array, Array, Array]:
    """Draw inputs, alike within a file or not, and targets that a teacher makes of them."""
    drawn = np.random.default_rng(seed)
    teacher = drawn.normal(size=(INPUTS, 24)) / 4, drawn.normal(size=(24, TARGETS)) / 5
    stored = drawn.normal(size=(FILES * HELD, INPUTS))
    if alike:  # as far apart as before, but most of it between files
        centres = np.repeat(drawn.normal(size=(FILES, INPUTS)), HELD, axis=0)
        stored = 0.8 * centres + 0.6 * stored
    fresh = drawn.normal(size=(VALIDATION, INPUTS))

    def targets(inputs: Array) -> Array:
        exact: Array = np.tanh(inputs @ teacher[0] * 2) @ teacher[1]
        return exact + 0.05 * drawn.normal(size=exact.shape)

    return stored, targets(stored), fresh, targets(fresh)


def loss(seed: int, shuffle: str, *, alike: bool) -> float:
    """Train from the seed's weights in one order; give the loss on samples never seen."""
    inputs, targets, fresh, wanted = samples(seed, alike=alike)
    drawn = np.random.default_rng([seed, 1])
    first = drawn.normal(size=(INPUTS, HIDDEN)) * math.sqrt(2 / INPUTS)
    last = drawn.normal(size=(HIDDEN, TARGETS)) * math.sqrt(1 / HIDDEN)
    weights: list[Any] = [first, np.zeros(HIDDEN), last, np.zeros(TARGETS)]
    velocity = [np.zeros_like(one) for one in weights]
    for epoch in range(EPOCHS):
        buffer = BUFFER if shuffle == "file" else 0
        order = epoch_order(
            [HELD] * FILES, shuffle=shuffle, seed=seed, epoch=epoch, buffer_samples=buffer
        )
        for at in range(0, len(order), BATCH):
            chosen = order[at : at + BATCH]
            for place, slope in enumerate(_slopes(weights, inputs[chosen], targets[chosen])):
                velocity[place] = MOMENTUM * velocity[place] + slope
                weights[place] = weights[place] - RATE * velocity[place]
    hidden = np.tanh(fresh @ weights[0] + weights[1])
    return float(np.mean((hidden @ weights[2] + weights[3] - wanted) ** 2))


def _slopes(weights: list[Any], inputs: Array, targets: Array) -> list[Array]:
    hidden = np.tanh(inputs @ weights[0] + weights[1])
    error = 2 * (hidden @ weights[2] + weights[3] - targets) / targets.size
    back = error @ weights[2].T * (1 - hidden**2)
    return [inputs.T @ back, back.sum(0), hidden.T @ error, error.sum(0)]


def compared(seeds: int, *, alike: bool) -> Answer:
    """Train in both orders from every seed."""
    orders = {
        name: [loss(seed, name, alike=alike) for seed in range(1, seeds + 1)]
        for name in ("file", "global")
    }
    spread = np.mean([samples(seed, alike=alike)[3].var() for seed in range(1, seeds + 1)])
    print(f"  {seeds} seeds; the targets' variance is {spread:.3f}")
    for name, losses in orders.items():
        print(f"  shuffle = {name}: validation loss {np.mean(losses):.5f}")
    pairs = zip(orders["file"], orders["global"], strict=True)
    return answered([one / other for one, other in pairs])


def main(seeds: int) -> int:
    """Print both answers; 1 if the claim does not hold or the control passes for equal."""
    print("samples of a file independent:")
    claim = compared(seeds, alike=False)
    print(f"  file over global: {claim}", flush=True)
    print("samples of a file alike (control):")
    control = compared(seeds, alike=True)
    print(f"  file over global: {control}")
    return int(not claim.is_equivalent or control.is_equivalent)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS))
