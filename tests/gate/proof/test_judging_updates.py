"""Hold single rules of the proof to updates that are made by hand: no framework is needed."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest

from harness.gate.proof.expected_updates import Gradients
from harness.gate.proof.given_back import refuse_one_for_two
from harness.gate.proof.gradient_errors import rounding
from harness.gate.proof.masks import refuse_one
from harness.gate.proof.moments import Update
from harness.gate.proof.running_variances import refuse_uncorrected, without_correction
from harness.gate.proof.untrained import Untrained
from harness.worker.network.layers import BatchNorm
from harness.worker.network.shapes import sites
from harness.worker.network.workload import SGD
from workloads import neuron_inverter, resnet50
from workloads.alexnet import WORKLOAD

BATCH = 16
NAMES = ("conv1/weight", "fc6/weight", "fc8/bias")
ITEMS = 4096
Values = npt.NDArray[np.float64]


def made(weights: Values, velocity: Values, number: int, after: tuple[Values, Values]) -> Update:
    """Give an update of each tensor from one state to another, rounded as fp32 rounds."""
    before: dict[str, Values] = {}
    moved: dict[str, Values] = {}
    for name in NAMES:
        before |= {name: weights, f"{name}/velocity": velocity}
        kept = [one.astype(np.float32).astype(np.float64) for one in after]
        moved |= dict(zip((name, f"{name}/velocity"), kept, strict=True))
    return Update(number, before, moved)


def stepped(weights: Values, velocity: Values, gradient: Values) -> tuple[Values, Values]:
    """Take one step as the optimiser of AlexNet does."""
    optimiser = WORKLOAD.optimiser
    assert isinstance(optimiser, SGD)
    scaled = BATCH / optimiser.rate_batch if optimiser.rate_batch else 1.0
    velocity = optimiser.momentum * velocity + gradient
    return weights - optimiser.rate * scaled * velocity, velocity


@pytest.mark.parametrize("growth", [0.01, 1.0, 100.0, 1e5])
def test_two_steps_are_two_however_large_the_second_gradient_is(growth: float) -> None:
    draw = np.random.default_rng(1)
    weights, velocity, gradient, next_one = draw.normal(size=(4, ITEMS))
    first = stepped(weights, 3 * velocity, gradient)
    second = stepped(*first, growth * next_one)
    one = made(weights, 3 * velocity, 1, first)
    refuse_one_for_two(WORKLOAD, one, made(weights, 3 * velocity, 5, second), BATCH)
    with pytest.raises(Untrained, match="only one moved the weights"):
        refuse_one_for_two(WORKLOAD, one, made(weights, 3 * velocity, 5, first), BATCH)


def gradients(draw: np.random.Generator, ranks: int) -> tuple[list[dict[str, Values]], Gradients]:
    """Give the gradients of ranks, and what is expected of them together."""
    common = {name: draw.normal(size=ITEMS) for name in NAMES}
    own = [{name: common[name] + draw.normal(size=ITEMS) for name in NAMES} for _ in range(ranks)]
    mean = {name: np.mean([one[name] for one in own], axis=0) for name in NAMES}
    sizes = {name: float(np.max(np.abs(one))) for name, one in mean.items()}
    return own, Gradients(mean, sizes, [], np.zeros(1))


def test_other_samples_are_no_rounding_where_a_squared_error_lies_behind_dropouts() -> None:
    draw = np.random.default_rng(3)
    right = {f"fc{number}/weight": draw.normal(size=ITEMS) for number in (4, 5, 9)}
    expected = Gradients(right, dict.fromkeys(right, 4.0), [], np.zeros(1))
    noisy = {name: np.asarray(one + 3e-4 * draw.normal(size=ITEMS)) for name, one in right.items()}
    for one, name in itertools.product((right, noisy), right):
        one[name][: ITEMS // 2] = 0.0 if one is right else 2.0**-22  # what a moment rounds to
    halves = {name: one.astype(np.float16).astype(np.float64) for name, one in noisy.items()}
    assert rounding(neuron_inverter.WORKLOAD, noisy, expected, "fp32", 2) is None
    assert rounding(neuron_inverter.WORKLOAD, halves, expected, "fp32", 1) is not None


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_a_sum_in_fp16_is_seen_and_the_noise_of_fp32_is_none(ranks: int) -> None:
    draw = np.random.default_rng(2)
    own, expected = gradients(draw, ranks)
    noisy: dict[str, Values] = {
        name: np.asarray(right + 1e-4 * np.std(right) * draw.normal(size=ITEMS))
        for name, right in expected.gradients.items()
    }
    assert rounding(WORKLOAD, noisy, expected, "fp32", ranks) is None
    summed = {
        name: np.asarray(sum(one[name] for one in own), np.float16).astype(np.float64) / ranks
        for name in NAMES
    }
    assert rounding(WORKLOAD, summed, expected, "fp32", ranks) == pytest.approx(2e-4, rel=0.2)
    half: dict[str, Values] = {
        name: np.asarray(np.mean([one[name].astype(np.float16) for one in own], 0, np.float64))
        for name in NAMES
    }
    if ranks < 3:  # more of them take each other's rounding away
        assert rounding(WORKLOAD, half, expected, "fp32", ranks) is not None


def norms_after(lacking: str, scatter: float) -> tuple[Update, dict[str, Values]]:
    """Give an update of ResNet-50's running variances, of which one norm's lack the correction.

    On average they do; each channel by itself is off by so many times as much.
    """
    draw = np.random.default_rng(3)
    before, after, expected = ({} for _ in range(3))
    for site in sites(resnet50.WORKLOAD.network):
        if isinstance(site.layer, BatchNorm):
            name = f"{site.path}/variance"
            before[name] = np.ones(site.output[0])
            right = 1 + draw.uniform(0.05, 0.15, size=site.output[0])
            lack = right - without_correction(site, right, before[name], BATCH)
            noise = scatter * draw.normal(size=right.size)
            noise -= (noise * lack) @ lack / (lack @ lack)  # so that the average is what it is
            share = (1.0 if name == lacking else 0.0) + noise
            expected[name], after[name] = right, right - share * lack
    return Update(1, before, after), expected


@pytest.mark.parametrize("name", ["stage1_block1/bn3/variance", "stage4_block3/bn3/variance"])
def test_what_rounding_makes_of_a_running_variance_is_no_missing_correction(name: str) -> None:
    with pytest.raises(Untrained, match=f"{name} is kept without Bessel's correction"):
        refuse_uncorrected(resnet50.WORKLOAD, BATCH, *norms_after(name, scatter=0.3))
    # as XLA's sums over 50,176 values left them on a CPU
    refuse_uncorrected(resnet50.WORKLOAD, BATCH, *norms_after(name, scatter=6.0))


@pytest.mark.parametrize(("path", "alive"), [("drop8", 128), ("drop4", 200)])
def test_few_values_that_are_dropped_alike_by_chance_are_not_one_mask(
    path: str, alive: int
) -> None:
    """Neuron-Inverter drops 5 %: of its last 128 values often the same, or none, at two steps."""
    size = {"drop8": 128, "drop4": 512}[path]
    living = np.arange(size) < alive
    mask = np.where(living, 1 / 0.95, 0.0)
    refuse_one(neuron_inverter.WORKLOAD, [{path: mask}] * 3, [{path: living}] * 3)
    whole = {"drop4": np.ones(512, dtype=bool)}
    with pytest.raises(Untrained, match="drop4 drops the same values at every step"):
        refuse_one(neuron_inverter.WORKLOAD, [{"drop4": np.ones(512)}] * 3, [whole] * 3)
