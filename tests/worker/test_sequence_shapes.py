"""Hold the words of sequences to counts made by hand, and to their own refusals."""

from __future__ import annotations

import pytest

from harness.worker.network.layers import (
    BatchNorm,
    Dense,
    Flatten,
    GlobalAverage,
    Heads,
    Network,
    Product,
)
from harness.worker.network.rule import HeadsShape, ImpossibleNetwork, SequenceShape
from harness.worker.network.sequence_layers import (
    GELU,
    Attention,
    ClassToken,
    Embedding,
    Gather,
    LayerNorm,
    Positions,
    Rotary,
    Segments,
    Select,
    TiedDense,
    ToSequence,
)
from harness.worker.network.shapes import count, macs_of_step, output_shapes, sites, vocabulary

TEXT = SequenceShape(6, 8)
TURNING = Rotary(100.0, interleaved=True)


def after(*layers: object, shape: tuple[int, ...] = TEXT) -> tuple[int, ...]:
    return output_shapes(Network(shape, layers))[-1][1]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("layer", "why"),
    [
        (Positions("it", 5), "it holds 5 positions of 6"),
        (Select("it", 6), "there is no position 6 of 6"),
        (Gather("it", (0, 6)), "there is no position 6 of 6"),
        (Gather("it", (1, 1)), "it takes a position twice"),
        (Gather("it", ()), "positions 0 is not positive"),
        (Segments("it", 4), "4 segments do not divide 6 positions"),
        (Heads("it", (Select("one", 0),), (Select("other", 0),)), "a sequence and a flat sample"),
        (Attention("it", 2, 2, 2, True), "it needs 12 features, and 8 enter"),
        (Attention("it", 3, 2, 1, True), "2 key/value heads do not divide 3"),
        (Attention("it", 2, 1, 1, True, TURNING), "a head of 1 has no pairs to turn"),
        (Attention("it", 2, 0, 2, True), "kv_heads 0 is not positive"),
        (Product("it", (Dense("up", 3),), (Dense("gate", 4),)), "which do not multiply"),
        (Product("it", (Dense("up", 3),), ()), "its body or its gate is empty"),
        (BatchNorm("it"), "it has no meaning for a sequence"),
        (Flatten("it"), "it has no meaning for a sequence"),
        (GlobalAverage("it"), "it has no meaning for a sequence"),
        (ToSequence("it"), "it needs spatial dimensions"),
        (TiedDense("it", "tokens", 9), "no embedding is called 'tokens'"),
    ],
    ids=str,
)
def test_an_impossible_layer_is_refused_by_name(layer: object, why: str) -> None:
    with pytest.raises(ImpossibleNetwork, match=why) as refusal:
        after(layer)
    assert layer.name in str(refusal.value)  # type: ignore[attr-defined]


@pytest.mark.parametrize("layer", [ClassToken("it"), LayerNorm("it"), Select("it", 0)], ids=str)
def test_a_word_of_sequences_refuses_an_image(layer: object) -> None:
    with pytest.raises(ImpossibleNetwork, match="it needs a sequence"):
        after(layer, shape=(3, 4, 4))


def test_tokens_enter_at_the_first_layer_only() -> None:
    with pytest.raises(ImpossibleNetwork, match="tokens enter at the first layer only"):
        after(GELU("gelu", tanh=True), Embedding("tokens", 9, 4), shape=(6,))


def test_a_tied_layer_has_the_size_of_its_table() -> None:
    layers = (Embedding("tokens", 9, 4), Dense("in", 5), TiedDense("head", "tokens", 9))
    with pytest.raises(ImpossibleNetwork, match=r"it needs a table of \(9, 5\)"):
        after(*layers, shape=(6,))


def test_a_tied_layer_multiplies_and_holds_nothing_of_its_own() -> None:
    network = Network((6,), (Embedding("tokens", 9, 4), TiedDense("head", "tokens", 9)))
    found = count(network)
    assert (found.parameters, found.macs, found.activations) == (36, 6 * 4 * 9, 6 * 4 + 6 * 9)
    assert macs_of_step(network) == 3 * found.macs
    assert vocabulary(network) == 9


def test_two_heads_count_as_both_and_end_a_network() -> None:
    heads = Heads("heads", (Gather("some", (1, 4)), Dense("up", 3)), (Select("one", 0),))
    (*_, last) = sites(Network(TEXT, (Segments("parts", 2), heads)))
    assert last.output == HeadsShape(length=2, features=3, numbers=8)
    assert last.output.size == 14
    with pytest.raises(ImpossibleNetwork, match="layer 'heads': two heads stand at the end only"):
        after(heads, GELU("gelu", tanh=True))


def test_attention_multiplies_at_all_positions_whether_it_hides_some_or_not() -> None:
    for causal in (False, True):
        layer = Attention("it", heads=4, kv_heads=2, head=1, causal=causal)
        assert count(Network(TEXT, (layer,))).macs == 2 * 6 * 6 * 4


def test_an_image_becomes_a_sequence_of_its_positions() -> None:
    shape = after(ToSequence("sequence"), ClassToken("first"), shape=(3, 4, 5))
    assert shape == SequenceShape(21, 3)
    (site,) = sites(Network((3, 4, 5), (ToSequence("sequence"),)))
    assert isinstance(site.output, SequenceShape)
