"""Hold each slip of a word to giving another output than the word, and to being named alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness.exact import roundings, slips
from harness.exact.attention import attention, flat, met, pinned, seen, softmax
from harness.exact.passes import alone
from harness.exact.training import change_of, clipped
from harness.exact.update_slips import of_first_update
from harness.worker.network.layers import LRN, BatchNorm, Conv, Dense, LeakyReLU, Network, Tanh
from harness.worker.network.rule import SequenceShape
from harness.worker.network.sequence_layers import (
    GELU,
    Attention,
    Embedding,
    LayerNorm,
    RMSNorm,
    Rotary,
)
from harness.worker.network.shapes import parameter_shapes, sites
from harness.worker.network.workload import SGD, AdamW, DataSet, Training

LAYERS = [
    (Attention("a", 4, 2, 4, causal=True, rotary=Rotary(100.0, interleaved=True)), (5, 32)),
    (Attention("a", 4, 2, 4, causal=True, rotary=Rotary(100.0, interleaved=False)), (5, 32)),
    (Attention("a", 2, 2, 3, causal=False), (5, 18)),
    (GELU("g", tanh=True), (4, 5)),
    (GELU("g", tanh=False), (4, 5)),
    (LayerNorm("n", 1e-2), (4, 5)),
    (RMSNorm("n", 1e-5), (4, 5)),
]
IMAGES = [
    (BatchNorm("b", epsilon=1e-5), (3, 4)),
    (LRN("l", 3, alpha=0.1, beta=0.75, k=2.0), (6, 4)),
    (LeakyReLU("l", 0.1), (6,)),
    (Conv("c", 4, 3), (3, 5, 5)),
    (Dense("d", 4), (3,)),
]
WORDS = [(layer, SequenceShape(*shape)) for layer, shape in LAYERS] + IMAGES


def drawn(layer, shape):
    draw = np.random.default_rng(7)
    (site,) = sites(Network(shape, (layer,)))
    state = {name: draw.normal(size=size) for name, size in parameter_shapes(site)}
    return site, state, draw.normal(size=(6, *shape))


def like(found, allowed=1e-8):
    return lambda one: one.shape == found.shape and bool(np.max(np.abs(one - found)) < allowed)


@pytest.mark.parametrize(("layer", "shape"), WORDS, ids=str)
def test_each_slip_is_named_alone(layer, shape) -> None:
    site, state, x = drawn(layer, shape)
    own = {name.rpartition("/")[2]: one for name, one in state.items()}
    each = list(slips.SLIPS[type(layer)](layer))
    assert each
    for words, forward in each:
        found, _ = forward(x, own, site.output[1:])
        said = slips.of_layer(site, state, x, found, like(found))
        assert said == f"; it is what {words} would give"


@pytest.mark.parametrize(("layer", "shape"), WORDS, ids=str)
def test_the_word_itself_and_what_is_off_otherwise_is_no_slip(layer, shape) -> None:
    site, state, x = drawn(layer, shape)
    right, _ = alone(site, state, x)
    assert slips.of_layer(site, state, x, right, like(right)) == ""
    draw = np.random.default_rng(11)
    for factor in (1.01, 1 + 2.0**-9, 1 + 2.0**-9 * draw.normal(size=right.shape)):
        off = right * factor
        assert slips.of_layer(site, state, x, off, like(off)) == ""


def test_what_fits_several_slips_is_named_as_none() -> None:
    site, state, x = drawn(*WORDS[0])
    right, _ = alone(site, state, x)
    assert slips.of_layer(site, state, x, right, lambda _: True) == ""


def test_a_word_without_usual_slips_has_none() -> None:
    site, state, x = drawn(Tanh("t"), (3,))
    assert slips.of_layer(site, state, x, np.tanh(x), lambda _: True) == ""


def attentions():
    return [(layer, shape) for layer, shape in WORDS if isinstance(layer, Attention)]


@pytest.mark.parametrize(("layer", "shape"), attentions(), ids=str)
@pytest.mark.parametrize("words", roundings.FORMS)
def test_attention_in_bf16_is_named_by_where_it_rounds(layer, shape, words) -> None:
    site, state, x = drawn(layer, shape)
    for form in roundings.FORMS[words]:
        found = form(layer, x)
        nearly = found + 1e-5 * np.random.default_rng(2).normal(size=found.shape)
        said = slips.of_layer(site, state, x, nearly, like(nearly))
        assert said == f"; it is what {words} would give (within its roundings)"


@pytest.mark.parametrize(("layer", "shape"), attentions(), ids=str)
def test_a_softmax_in_fp16_is_not_taken_for_one_in_bf16(layer, shape, monkeypatch) -> None:
    site, state, x = drawn(layer, shape)
    with monkeypatch.context() as narrow, np.errstate(over="ignore"):  # of hidden scores
        narrow.setattr(roundings, "bf16", lambda one: one.astype(np.float16).astype(float))
        found = [form(layer, x) for forms in roundings.FORMS.values() for form in forms]
    for one in found:
        assert slips.of_layer(site, state, x, one, like(one)) == ""


def test_numbers_are_rounded_to_bf16_by_ties_to_even() -> None:
    unit = 2.0**-7
    x = np.array([1 + unit / 2, 1 + 1.5 * unit, 1 + 0.51 * unit, -1 - 0.49 * unit, 0.0])
    assert roundings.bf16(x).tolist() == [1.0, 1 + 2 * unit, 1 + unit, -1.0, 0.0]


@pytest.mark.parametrize(("layer", "shape"), WORDS, ids=str)
def test_a_dropout_of_what_a_layer_gives_is_named(layer, shape) -> None:
    site, state, x = drawn(layer, shape)
    right, _ = alone(site, state, x)
    found = right * (np.random.default_rng(4).random(right.shape) < 0.8) / 0.8
    said = slips.of_layer(site, state, x, found, like(found))
    assert said == "; it is what a dropout of about 0.2 would give"


@pytest.mark.parametrize(
    ("gain", "words"), [(1 / 0.75, "of about 0.25"), (1.0, "without its scale")]
)
def test_a_dropout_of_shares_is_named(gain, words) -> None:
    layer, shape = WORDS[0]
    site, state, x = drawn(layer, shape)
    found = dropped(layer, x, gain, np.random.default_rng(4))
    said = slips.of_layer(site, state, x, found, like(found))
    assert said == f"; it is what a dropout {words} would give"


def test_what_hides_the_same_of_every_sample_is_no_dropout() -> None:
    layer, shape = WORDS[0]
    site, state, x = drawn(layer, shape)
    found = dropped(layer, x, 1 / 0.75, None)
    assert slips.of_layer(site, state, x, found, like(found)) == ""


def dropped(layer, x, gain, draw):
    """Drop a quarter of attention's shares; without a draw, the same of all heads."""
    how = pinned(layer)
    queries, keys, values = met(layer, x, how)
    shares = softmax(seen(queries @ keys.swapaxes(2, 3) * how.scale, how))
    one = np.random.default_rng(4).random(shares.shape[2:])
    chance = np.broadcast_to(one, shares.shape) if draw is None else draw.random(shares.shape)
    return flat(shares * (chance > 0.25) * gain @ values)


def test_a_query_that_sees_nothing_sees_all_alike() -> None:
    """As where what is hidden is a large negative number."""
    layer = Attention("a", 1, 1, 2, causal=True)
    x = np.random.default_rng(3).normal(size=(1, 4, 6))
    hiding = replace(pinned(layer), ahead=-1)
    output, _ = attention(layer, x, {}, (), hiding)
    assert np.allclose(output[0, 0], x[0, :, 4:].mean(axis=0))
    assert np.allclose(output[0, 1], x[0, 0, 4:])


def workload(optimiser):
    network = Network((3,), (Dense("d", 4),))
    return Training("w", "W", "samples", network, "cross-entropy", optimiser, DataSet("n", 1), 0, 0)


CLIPPED = AdamW(rate=1e-2, epsilon=1e-3, weight_decay=0.1, clip=0.05)


def moved(optimiser, name, gradients, value, called=None):
    change = change_of(workload(optimiser), 2, {})
    return value - change(called or name, value, gradients[name], 1)


def updated(name, optimiser, found, state, gradients):
    return of_first_update(workload(optimiser), 2, name, state, gradients, like(found, 1e-12))


def test_slips_of_an_update_are_named() -> None:
    draw = np.random.default_rng(5)
    shapes = {"d/weight": (4, 3), "d/bias": (4,)}
    state, raw = ({name: draw.normal(size=one) for name, one in shapes.items()} for _ in "ab")
    right = clipped(workload(CLIPPED), raw)
    by_item = {name: np.clip(one, -0.05, 0.05) for name, one in raw.items()}
    plain = AdamW(rate=1e-2, epsilon=1e-3, weight_decay=0.0, clip=0.05)
    summed = {name: one + 0.1 * state[name] for name, one in right.items()}
    weight, bias = state["d/weight"], state["d/bias"]
    for name, found, words in (
        ("d/weight", moved(CLIPPED, "d/weight", raw, weight), "no clipping"),
        ("d/weight", moved(CLIPPED, "d/weight", by_item, weight), "clipping item by item"),
        ("d/weight", moved(plain, "d/weight", right, weight), "no decay"),
        ("d/weight", moved(plain, "d/weight", summed, weight), "a decay added to the gradient"),
        (
            "d/bias",
            moved(CLIPPED, "d/bias", right, bias, called="d/weight"),
            "a decay of biases and norms too",
        ),
    ):
        said = updated(name, CLIPPED, found, state, raw)
        assert said == f"; it is what {words} would give"
    assert updated("d/bias", CLIPPED, moved(CLIPPED, "d/bias", right, bias), state, raw) == ""


def test_a_decay_of_sgd_that_is_left_out_is_named() -> None:
    draw = np.random.default_rng(5)
    state, raw = ({"d/weight": draw.normal(size=(4, 3))} for _ in "ab")
    rule = SGD(rate=0.1, momentum=0.9, weight_decay=0.1)
    found = moved(SGD(rate=0.1, momentum=0.9), "d/weight", raw, state["d/weight"])
    assert updated("d/weight", rule, found, state, raw) == "; it is what no decay would give"


def test_a_table_that_its_head_does_not_train_is_named() -> None:
    site, _, _ = drawn(Embedding("e", 5, 3), (4,))
    draw = np.random.default_rng(5)
    x, slope = draw.integers(0, 5, size=(2, 4)), draw.normal(size=(2, 4, 3))
    found = np.zeros((5, 3))
    np.add.at(found, x, slope)
    words = "; it is what a head that trains no table would give"
    assert slips.of_table(site, x, slope, like(found)) == words
    assert slips.of_table(site, x, slope, like(found + 1)) == ""
