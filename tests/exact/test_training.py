"""Hold our own optimisers to their recurrences, written out number by number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness.exact.training import steps
from harness.worker.network.layers import Dense, Network
from harness.worker.network.workload import SGD, Adam, AdamW, DataSet, Training

WORKLOAD = Training(
    name="line",
    title="One weight and one bias",
    unit="samples",
    network=Network((1,), (Dense("d", 1),)),
    loss="mean-squared-error",
    optimiser=SGD(rate=0.1),
    data=DataSet("none", 1),
    parameters=2,
    macs=1,
)
START = {"d/weight": np.array([[2.0]]), "d/bias": np.array([0.5])}
X, TARGET = np.array([[1.0], [3.0]]), np.array([[1.0], [2.0]])


def slopes(weight, bias):
    off = [weight * x + bias - y for x, y in ((1.0, 1.0), (3.0, 2.0))]
    return off[0] * 1.0 + off[1] * 3.0, off[0] + off[1]


def taken(optimiser, count=3):
    made = steps(replace(WORKLOAD, optimiser=optimiser), START, X, TARGET, count)
    return [(step.state["d/weight"].item(), step.state["d/bias"].item()) for step in made]


def test_momentum_adds_the_whole_gradient_and_decays_weights_only():
    weight, bias, fast, slow = 2.0, 0.5, 0.0, 0.0
    expected = []
    for _ in range(3):
        by_weight, by_bias = slopes(weight, bias)
        fast = 0.8 * fast + by_weight + 0.05 * weight
        slow = 0.8 * slow + by_bias
        weight, bias = weight - 0.1 * fast, bias - 0.1 * slow
        expected.append((weight, bias))
    found = taken(SGD(rate=0.1, momentum=0.8, weight_decay=0.05))
    assert np.array(found) == pytest.approx(np.array(expected), rel=1e-12)


def test_a_rate_for_a_batch_is_scaled_by_this_one():
    scaled, plain = taken(SGD(rate=0.1, rate_batch=8)), taken(SGD(rate=0.1 * 2 / 8))
    assert np.array(scaled) == pytest.approx(np.array(plain), rel=1e-12)


def test_adam_corrects_both_moments_and_adds_epsilon_to_the_root():
    values, first, second = [2.0, 0.5], [0.0, 0.0], [0.0, 0.0]
    expected = []
    for number in (1, 2, 3):
        for index, slope in enumerate(slopes(*values)):
            first[index] = 0.7 * first[index] + 0.3 * slope
            second[index] = 0.8 * second[index] + 0.2 * slope * slope
        for index in (0, 1):
            mean = first[index] / (1 - 0.7**number)
            root = (second[index] / (1 - 0.8**number)) ** 0.5
            values[index] -= 0.1 * mean / (root + 0.5)
        expected.append(tuple(values))
    found = taken(Adam(rate=0.1, beta1=0.7, beta2=0.8, epsilon=0.5))
    assert np.array(found) == pytest.approx(np.array(expected), rel=1e-12)


def test_adamw_decays_weights_beside_adam_and_clips_all_gradients_together():
    values, first, second = [2.0, 0.5], [0.0, 0.0], [0.0, 0.0]
    expected = []
    for number in (1, 2, 3):
        raw = slopes(*values)
        norm = (raw[0] ** 2 + raw[1] ** 2) ** 0.5
        assert norm > 1.5
        for index, slope in enumerate(one * 1.5 / norm for one in raw):
            first[index] = 0.7 * first[index] + 0.3 * slope
            second[index] = 0.8 * second[index] + 0.2 * slope * slope
        decay = (0.25, 0.0)
        for index in (0, 1):
            mean = first[index] / (1 - 0.7**number)
            root = (second[index] / (1 - 0.8**number)) ** 0.5
            values[index] -= 0.1 * (mean / (root + 0.5) + decay[index] * values[index])
        expected.append(tuple(values))
    rule = AdamW(rate=0.1, beta1=0.7, beta2=0.8, epsilon=0.5, weight_decay=0.25, clip=1.5)
    assert np.array(taken(rule)) == pytest.approx(np.array(expected), rel=1e-12)


def test_gradients_shorter_than_the_clip_stay_as_they_are():
    plain, clipped = (AdamW(rate=0.1, epsilon=0.5, clip=clip) for clip in (None, 1e6))
    assert taken(plain) == taken(clipped)
