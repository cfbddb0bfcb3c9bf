"""Hold our own layers to plain loops, and their gradients to differences of outputs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from harness.exact import norms
from harness.exact.passes import Pass, alone
from harness.exact.training import loss
from harness.worker.network.layers import (
    LRN,
    AveragePool,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Flatten,
    GlobalAverage,
    LeakyReLU,
    MaxPool,
    Network,
    ReLU,
    Residual,
    Scale,
    Tanh,
)
from harness.worker.network.shapes import parameter_shapes, sites

SAMPLES = 3
STEP = 1e-6

WINDOWS = [
    (Conv("c", 4, 3, pad=(1, 1)), (2, 7)),
    (Conv("c", 4, 3, stride=2, pad=(2, 0), groups=2), (4, 6, 5)),
    (Conv("c", 6, 2, stride=3, pad=(0, 1), groups=3, bias=False), (3, 4, 5, 3)),
    (Conv("c", 2, 1, stride=2), (3, 4, 4)),
    (MaxPool("p", 3, 2), (2, 8)),
    (MaxPool("p", 3, 2, ceil=True), (2, 8, 6)),
    (MaxPool("p", 2, 2, pad=(1, 0), ceil=True), (2, 4, 5, 3)),
    (MaxPool("p", 2, 3, pad=(1, 1)), (1, 5, 6)),
    (AveragePool("p", 2, 2), (2, 5)),
    (AveragePool("p", 3, 1), (2, 4, 5)),
    (AveragePool("p", 2, 2), (1, 4, 5, 2)),
]

OTHERS = [
    (Dense("d", 4), (5,)),
    (Dense("d", 2, bias=False), (3,)),
    (BatchNorm("n", epsilon=0.1), (3,)),
    (BatchNorm("n"), (2, 3, 4)),
    (LRN("l", size=3, alpha=0.3, beta=0.75, k=2.0), (5, 2, 3)),
    (LRN("l", size=5, alpha=0.1, beta=0.5, k=1.0), (3, 4)),
    (ReLU("r"), (2, 3)),
    (LeakyReLU("r", 0.3), (7,)),
    (Tanh("t"), (4,)),
    (Scale("s", 1.2), (2, 2)),
    (GlobalAverage("g"), (3, 2, 3, 2)),
    (Flatten("f"), (3, 2, 2)),
    (Dropout("d", 0.5), (4,)),
]


def drawn(layer, shape):
    """Give a layer's site, what it holds and a batch for it."""
    draw = np.random.default_rng(7)
    (site,) = sites(Network(shape, (layer,)))
    state = {name: draw.normal(size=size) for name, size in parameter_shapes(site)}
    return site, state, draw.normal(size=(SAMPLES, *shape))


def by_loops(site, state, x):
    """Compute a layer that slides a window cell by cell, as its words say."""
    layer, dimensions = site.layer, len(site.input) - 1
    before = getattr(layer, "pad", (0, 0))[0]
    groups = getattr(layer, "groups", 1)
    entering, leaving = site.input[0] // groups, site.output[0] // groups
    y = np.zeros((SAMPLES, *site.output))
    for sample, channel in product(range(SAMPLES), range(site.output[0])):
        for window in product(*map(range, site.output[1:])):
            met = []
            for cell in product(range(layer.kernel), repeat=dimensions):
                at = [w * layer.stride + c - before for w, c in zip(window, cell, strict=True)]
                if all(0 <= a < size for a, size in zip(at, site.input[1:], strict=True)):
                    met.append((cell, tuple(at)))
            if isinstance(layer, Conv):
                first = channel // leaving * entering
                y[(sample, channel, *window)] = sum(
                    state["c/weight"][(channel, inner, *cell)] * x[(sample, first + inner, *at)]
                    for cell, at in met
                    for inner in range(entering)
                ) + (state["c/bias"][channel] if layer.bias else 0)
            else:
                values = [x[(sample, channel, *at)] for _, at in met]
                is_max = isinstance(layer, MaxPool)
                y[(sample, channel, *window)] = max(values) if is_max else np.mean(values)
    return y


@pytest.mark.parametrize(("layer", "shape"), WINDOWS, ids=str)
def test_windows_slide_as_their_words_say(layer, shape):
    site, state, x = drawn(layer, shape)
    assert alone(site, state, x)[0] == pytest.approx(by_loops(site, state, x), rel=1e-12)


def test_a_convolution_in_blocks_of_channels_is_the_same(monkeypatch):
    site, state, x = drawn(*WINDOWS[1])
    slope = np.random.default_rng(8).normal(size=(SAMPLES, *site.output))
    whole, whole_back = alone(site, state, x)
    whole_slopes = whole_back(slope)
    monkeypatch.setattr("harness.exact.windows._MOST_ITEMS", 1)
    y, back = alone(site, state, x)
    assert y == pytest.approx(whole, rel=1e-12)
    slopes = back(slope)
    assert slopes[0] == pytest.approx(whole_slopes[0], rel=1e-12)
    assert slopes[1]["weight"] == pytest.approx(whole_slopes[1]["weight"], rel=1e-12)


@pytest.mark.parametrize(("layer", "shape"), [*WINDOWS, *OTHERS], ids=str)
def test_a_gradient_is_what_the_output_changes_by(layer, shape):
    site, state, x = drawn(layer, shape)
    draw = np.random.default_rng(9)
    y, back = alone(site, state, x)
    slope = draw.normal(size=y.shape)
    before, found = back(slope)
    slopes = {"input": before, **{f"{site.path}/{kind}": one for kind, one in found.items()}}
    given = {"input": x, **state}
    assert set(slopes) == set(given)
    for name, value in given.items():
        way = draw.normal(size=value.shape)

        def along(by, name=name, value=value, way=way):
            moved = {**given, name: value + by * way}
            return np.sum(alone(site, moved, moved["input"])[0] * slope)

        expected = (along(STEP) - along(-STEP)) / (2 * STEP)
        assert np.sum(slopes[name] * way) == pytest.approx(expected, rel=1e-6, abs=1e-8), name


def test_a_batch_norm_normalises_by_the_batch_and_moves_its_statistics_without_bias():
    layer = BatchNorm("n", epsilon=0.5, momentum=0.25)
    site, _, x = drawn(layer, (2, 3))
    state = {"n/gamma": np.array([2.0, 3.0]), "n/beta": np.array([1.0, -1.0])}
    y, _ = alone(site, state, x)
    for channel in range(2):
        values = [float(x[n, channel, i]) for n in range(SAMPLES) for i in range(3)]
        mean = sum(values) / 9
        squares = sum((value - mean) ** 2 for value in values)
        z = (x[:, channel] - mean) / (squares / 9 + 0.5) ** 0.5
        expected = state["n/gamma"][channel] * z + state["n/beta"][channel]
        assert y[:, channel] == pytest.approx(expected, rel=1e-12)
        own = {"mean": np.array([4.0, 4.0]), "variance": np.array([5.0, 5.0])}
        moved = norms.running(layer, x, own)
        assert moved["mean"][channel] == pytest.approx(3 + 0.25 * mean, rel=1e-12)
        assert moved["variance"][channel] == pytest.approx(3.75 + 0.25 * squares / 8, rel=1e-12)


def test_lrn_divides_by_the_squares_of_the_channels_around():
    layer = LRN("l", size=3, alpha=0.3, beta=0.75, k=2.0)
    site, _, x = drawn(layer, (4, 1))
    y, _ = alone(site, {}, x)
    for channel in range(4):
        around = x[:, max(0, channel - 1) : channel + 2]
        divisor = (2.0 + 0.3 * (around**2).sum(axis=1)) ** 0.75
        assert y[:, channel] == pytest.approx(x[:, channel] / divisor, rel=1e-12)


NETWORK = Network(
    (2, 6, 6),
    (
        Conv("first", 4, 3, pad=(1, 0)),
        Residual("block", (BatchNorm("norm"), Tanh("tanh")), (Conv("way", 4, 1, bias=False),)),
        Residual("same", (Conv("inner", 4, 3, pad=(1, 1)),)),
        GlobalAverage("average"),
        Dropout("drop", 0.5),
        Dense("last", 3),
    ),
)


@pytest.mark.parametrize("kind", ["cross-entropy", "mean-squared-error"])
def test_a_network_s_gradient_is_what_its_loss_changes_by(kind):
    draw = np.random.default_rng(10)
    named = [one for site in sites(NETWORK) for one in parameter_shapes(site)]
    state = {name: draw.normal(size=shape) for name, shape in named}
    state |= {f"block/norm/{kind}": np.ones(4) for kind in ("mean", "variance")}
    x = draw.normal(size=(SAMPLES, 2, 6, 6))
    target = np.array([0, 2, 1]) if kind == "cross-entropy" else draw.normal(size=(SAMPLES, 3))
    passed = Pass(NETWORK, state, x)
    value, slope = loss(kind, passed.output, target)
    passed.backward(slope)
    assert set(passed.gradients) == {name for name, _ in named}
    for name, shape in named:
        way = draw.normal(size=shape)
        low, high = (
            loss(kind, Pass(NETWORK, {**state, name: state[name] + by * way}, x).output, target)[0]
            for by in (-STEP, STEP)
        )
        expected = (high - low) / (2 * STEP)
        assert np.sum(passed.gradients[name] * way) == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert passed.outputs["same"] == pytest.approx(
        passed.outputs["block"] + passed.outputs["same/inner"]
    )
    assert set(passed.statistics) == {"block/norm/mean", "block/norm/variance"}
    assert value > 0


def test_the_losses_are_means():
    output = np.array([[1.0, 3.0], [0.0, 0.0]])
    off = loss("mean-squared-error", output, np.array([[0.0, 0.0], [2.0, 2.0]]))[0]
    assert off == pytest.approx((1 + 9 + 4 + 4) / 4)
    entropy = loss("cross-entropy", output, np.array([1, 0]))[0]
    assert entropy == pytest.approx((np.log1p(np.exp(-2)) + np.log(2)) / 2)


@pytest.mark.parametrize("shape", [(3,), (2, 4, 5)])
def test_a_repeated_sample_is_computed_once_and_weighted(shape):
    draw = np.random.default_rng(3)
    network = Network(shape, (BatchNorm("n", epsilon=0.1), ReLU("r")))
    state = {f"n/{kind}": draw.normal(size=shape[0]) for kind in ("gamma", "beta", "mean")}
    state["n/variance"] = 1 + draw.random(shape[0])
    rows = [0, 1, 1, 0, 2, 0]
    x, slope = draw.normal(size=(3, *shape)), draw.normal(size=(len(rows), *shape))
    whole = Pass(network, state, x[rows])
    whole.backward(slope)
    few = Pass(network, state, x, times=np.bincount(rows).astype(float))
    together = np.zeros_like(x)
    np.add.at(together, rows, slope)
    few.backward(together)
    assert few.output[rows] == pytest.approx(whole.output, rel=1e-12)
    for found, right in (few.statistics, whole.statistics), (few.gradients, whole.gradients):
        for name, values in right.items():
            assert found[name] == pytest.approx(values, rel=1e-10)
