"""Hold our own words of sequences to plain loops, and their gradients to differences of outputs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.exact.passes import Pass, alone
from harness.exact.training import loss
from harness.worker.network.layers import Conv, Dense, Heads, Network, Product, Residual
from harness.worker.network.rule import SequenceShape
from harness.worker.network.sequence_layers import (
    GELU,
    Attention,
    ClassToken,
    Embedding,
    Gather,
    LayerNorm,
    Positions,
    RMSNorm,
    Rotary,
    Segments,
    Select,
    SiLU,
    TiedDense,
    ToSequence,
)
from harness.worker.network.shapes import parameter_shapes, sites
from harness.worker.network.workload import MASKED

SAMPLES = 3
STEP = 1e-6
HALVES, PAIRS = Rotary(100.0, interleaved=False), Rotary(100.0, interleaved=True)

ATTENTIONS = [
    Attention("a", heads=2, kv_heads=2, head=3, causal=False),
    Attention("a", heads=2, kv_heads=2, head=3, causal=True),
    Attention("a", heads=4, kv_heads=2, head=4, causal=True, rotary=HALVES),
    Attention("a", heads=4, kv_heads=1, head=4, causal=True, rotary=PAIRS),
]
WORDS = [
    (Dense("d", 4), SequenceShape(5, 3)),
    (Dense("d", 2, bias=False), SequenceShape(2, 3)),
    (Positions("p", 7), SequenceShape(5, 3)),
    (Segments("g", 2), SequenceShape(6, 3)),
    (ClassToken("c"), SequenceShape(5, 3)),
    (ToSequence("s"), (3, 2, 4)),
    (LayerNorm("n", epsilon=0.1), SequenceShape(4, 5)),
    (LayerNorm("n", bias=False), SequenceShape(4, 5)),
    (RMSNorm("n", epsilon=0.1), SequenceShape(4, 5)),
    (GELU("g", tanh=True), SequenceShape(4, 5)),
    (GELU("g", tanh=False), (6,)),
    (SiLU("s"), SequenceShape(4, 5)),
    (Select("s", 0), SequenceShape(4, 5)),
    (Select("s", 3), SequenceShape(4, 5)),
    (Gather("s", (2, 0)), SequenceShape(4, 5)),
    *((one, SequenceShape(5, (one.heads + 2 * one.kv_heads) * one.head)) for one in ATTENTIONS),
]


def drawn(layer, shape):
    """Give a layer's site, what it holds and a batch for it."""
    draw = np.random.default_rng(7)
    (site,) = sites(Network(shape, (layer,)))
    state = {name: draw.normal(size=size) for name, size in parameter_shapes(site)}
    return site, state, draw.normal(size=(SAMPLES, *shape))


@pytest.mark.parametrize(("layer", "shape"), WORDS, ids=str)
def test_a_gradient_is_what_the_output_changes_by(layer, shape):
    site, state, x = drawn(layer, shape)
    draw = np.random.default_rng(9)
    y, back = alone(site, state, x)
    assert y.shape == (SAMPLES, *site.output)
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


def rotated(rotary, vector, position):
    """Turn the pairs of one head at one position, number by number."""
    size, result = len(vector), list(vector)
    for pair in range(size // 2):
        angle = position / rotary.theta ** (2 * pair / size)
        i, j = (2 * pair, 2 * pair + 1) if rotary.interleaved else (pair, pair + size // 2)
        result[i] = vector[i] * math.cos(angle) - vector[j] * math.sin(angle)
        result[j] = vector[j] * math.cos(angle) + vector[i] * math.sin(angle)
    return np.array(result)


@pytest.mark.parametrize("layer", ATTENTIONS, ids=str)
def test_attention_mixes_what_its_mask_lets_it_see(layer):
    site, state, x = drawn(layer, SequenceShape(5, (layer.heads + 2 * layer.kv_heads) * layer.head))
    y, _ = alone(site, state, x)
    size, keys_from = layer.head, layer.heads * layer.head
    values_from = keys_from + layer.kv_heads * size

    def head(position, start, number):
        return position[start + number * size : start + (number + 1) * size]

    for sample in range(SAMPLES):
        for query in range(5):
            for number in range(layer.heads):
                shared = number // (layer.heads // layer.kv_heads)
                seen = range(query + 1) if layer.causal else range(5)
                q = head(x[sample, query], 0, number)
                ks = [head(x[sample, one], keys_from, shared) for one in seen]
                if layer.rotary is not None:
                    q = rotated(layer.rotary, q, query)
                    ks = [rotated(layer.rotary, k, at) for at, k in zip(seen, ks, strict=True)]
                weights = [math.exp(float(q @ k) / math.sqrt(size)) for k in ks]
                values = [head(x[sample, one], values_from, shared) for one in seen]
                mixed = sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)
                assert head(y[sample, query], 0, number) == pytest.approx(mixed, rel=1e-12)


def test_norms_take_each_position_alone():
    layer = LayerNorm("n", epsilon=0.5)
    _, state, x = drawn(layer, SequenceShape(2, 3))
    for norm in (layer, RMSNorm("n", epsilon=0.5)):
        (site,) = sites(Network(SequenceShape(2, 3), (norm,)))
        y, _ = alone(site, state, x)
        vector = x[1, 1]
        mean = float(vector.sum()) / 3 if norm is layer else 0.0
        squares = sum((value - mean) ** 2 for value in vector) / 3
        expected = state["n/gamma"] * (vector - mean) / math.sqrt(squares + 0.5)
        shift = state["n/beta"] if norm is layer else 0.0
        assert y[1, 1] == pytest.approx(expected + shift, rel=1e-12)


@pytest.mark.parametrize("x", [-3.0, -0.5, 0.0, 0.7, 2.0])
def test_both_gelus_and_silu_are_their_formulas(x):
    def of(layer):
        (site,) = sites(Network((1,), (layer,)))
        return alone(site, {}, np.array([[x]]))[0].item()

    exact = x * (1 + math.erf(x / math.sqrt(2))) / 2
    assert of(GELU("g", tanh=False)) == pytest.approx(exact, rel=1e-12)
    bent = math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    assert of(GELU("g", tanh=True)) == pytest.approx(x * (1 + bent) / 2, rel=1e-12)
    assert of(SiLU("s")) == pytest.approx(x / (1 + math.exp(-x)), rel=1e-12)


def test_an_image_becomes_a_sequence_row_by_row():
    (site,) = sites(Network((3, 2, 4), (ToSequence("s"),)))
    x = np.arange(24.0).reshape(1, 3, 2, 4)
    y, _ = alone(site, {}, x)
    assert y.shape == (1, 8, 3)
    assert y[0, 5].tolist() == x[0, :, 1, 1].tolist()


TIED = Network(
    (4,),
    (
        Embedding("tokens", 6, 4),
        Positions("positions", 5),
        Residual(
            "mix",
            (
                RMSNorm("norm"),
                Dense("in", 8, bias=False),
                Attention("attention", heads=2, kv_heads=1, head=2, causal=True, rotary=PAIRS),
                Dense("out", 4),
            ),
        ),
        Product("glu", (Dense("up", 4),), (Dense("gate", 4), SiLU("silu"))),
        LayerNorm("norm"),
        TiedDense("head", "tokens", 6, bias=True),
    ),
)
ASKED = Network(
    (4,),
    (
        Embedding("tokens", 6, 4),
        Segments("segments", 2),
        LayerNorm("norm"),
        Heads(
            "heads",
            (Gather("some", (3, 1)), Dense("up", 4), TiedDense("token", "tokens", 6, bias=True)),
            (Select("first", 0), Dense("pair", 2)),
        ),
    ),
)
SEEN = Network(
    (2, 4, 4),
    (
        Conv("patch", 4, 2, stride=2),
        ToSequence("sequence"),
        ClassToken("class_token"),
        Positions("positions", 5),
        Residual(
            "mlp", (LayerNorm("norm"), Dense("in", 6), GELU("gelu", tanh=False), Dense("out", 4))
        ),
        Select("select", 0),
        Dense("head", 3),
    ),
)


@pytest.mark.parametrize(
    ("network", "kind"),
    [
        (TIED, "token-cross-entropy"),
        (ASKED, "token-and-pair-cross-entropy"),
        (SEEN, "cross-entropy"),
    ],
)
def test_a_network_s_gradient_is_what_its_loss_changes_by(network, kind):
    draw = np.random.default_rng(10)
    named = [one for site in sites(network) for one in parameter_shapes(site)]
    state = {name: draw.normal(size=shape) for name, shape in named}
    if network is TIED:
        x = draw.integers(6, size=(SAMPLES, 4))
        target = draw.integers(6, size=(SAMPLES, 4))
        target[0, 1] = target[2, 3] = MASKED
    elif network is ASKED:
        x = draw.integers(6, size=(SAMPLES, 4))
        target = np.array([[5, MASKED, 1], [0, 3, 0], [2, 2, 1]])
    else:
        x, target = draw.normal(size=(SAMPLES, 2, 4, 4)), np.array([0, 2, 1])
    passed = Pass(network, state, x)
    _, slope = loss(kind, passed.output, target)
    passed.backward(slope)
    assert set(passed.gradients) == {name for name, _ in named}
    for name, shape in named:
        way = draw.normal(size=shape)
        low, high = (
            loss(kind, Pass(network, {**state, name: state[name] + by * way}, x).output, target)[0]
            for by in (-STEP, STEP)
        )
        expected = (high - low) / (2 * STEP)
        found = np.sum(passed.gradients[name] * way)
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-9), name


def test_the_loss_of_tokens_is_the_mean_over_those_that_are_not_masked():
    output = np.array([[[1.0, 3.0], [0.0, 0.0]], [[5.0, 1.0], [2.0, 0.0]]])
    target = np.array([[1, 0], [MASKED, MASKED]])
    value, slope = loss("token-cross-entropy", output, target)
    assert value == pytest.approx((math.log1p(math.exp(-2)) + math.log(2)) / 2)
    assert not slope[1].any()
