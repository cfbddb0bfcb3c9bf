"""Hold the network vocabulary's arithmetic to brute force and to its own refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.worker.network.layers import (
    LRN,
    AveragePool,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Flatten,
    GlobalAverage,
    MaxPool,
    Network,
    ReLU,
    Residual,
)
from harness.worker.network.rule import ImpossibleNetwork
from harness.worker.network.shapes import (
    count,
    macs_of_step,
    output_shapes,
    parameter_shapes,
    sites,
)

IMAGE = (3, 32, 32)


def after(*layers: object, shape: tuple[int, ...] = IMAGE) -> tuple[int, ...]:
    return output_shapes(Network(shape, layers))[-1][1]


def windows_by_hand(
    size: int, kernel: int, stride: int, pad: tuple[int, int], ceil: bool = False
) -> int:
    """Slide a window over one padded dimension and count where it may stand."""
    before, behind = pad
    count = 0
    start = 0
    while start + kernel <= before + size + behind:
        count += 1
        start += stride
    covered = start - stride + kernel == before + size + behind
    if ceil and not covered and start < before + size:
        count += 1
    return count


sizes = st.integers(8, 40)
kernels = st.integers(1, 8)
strides = st.integers(1, 5)
ranks = st.integers(1, 3)


@given(size=sizes, kernel=kernels, stride=strides, pad=st.tuples(kernels, kernels), rank=ranks)
def test_a_convolution_has_one_output_per_place_of_its_kernel(
    size: int, kernel: int, stride: int, pad: tuple[int, int], rank: int
) -> None:
    shape = after(Conv("conv", 5, kernel, stride, pad), shape=(2, *[size] * rank))
    assert shape == (5, *[windows_by_hand(size, kernel, stride, pad)] * rank)


@given(
    size=sizes,
    kernel=kernels,
    stride=strides,
    pads=st.tuples(st.floats(0, 0.99), st.floats(0, 0.99)),
    rank=ranks,
    ceil=st.booleans(),
)
def test_a_max_pool_rounds_as_it_says(
    size: int, kernel: int, stride: int, pads: tuple[float, float], rank: int, ceil: bool
) -> None:
    pad = (int(pads[0] * kernel), int(pads[1] * kernel))
    shape = after(MaxPool("pool", kernel, stride, pad, ceil), shape=(2, *[size] * rank))
    assert shape == (2, *[windows_by_hand(size, kernel, stride, pad, ceil)] * rank)


@given(size=sizes, kernel=kernels, stride=strides, rank=ranks)
def test_an_average_pool_rounds_down(size: int, kernel: int, stride: int, rank: int) -> None:
    shape = after(AveragePool("pool", kernel, stride), shape=(2, *[size] * rank))
    assert shape == (2, *[windows_by_hand(size, kernel, stride, (0, 0))] * rank)


def test_a_last_window_may_not_start_in_the_pad_behind() -> None:
    # Padded by one on both sides, the fourth window would start at 6: behind the five values.
    assert after(MaxPool("pool", 2, 2, (1, 1), ceil=True), shape=(1, 5)) == (1, 3)


@given(groups=st.sampled_from([1, 2, 3, 6]), rank=ranks, bias=st.booleans())
def test_groups_divide_the_weights_and_the_multiplications(
    groups: int, rank: int, bias: bool
) -> None:
    network = Network((6, *[9] * rank), (Conv("conv", 12, 3, groups=groups, bias=bias),))
    counts = count(network)
    weights = 12 * (6 // groups) * 3**rank
    assert counts.parameters == weights + (12 if bias else 0)
    assert counts.macs == weights * 7**rank


@given(rename=st.sampled_from(["a", "other"]), width=st.integers(1, 9))
def test_the_identity_ignores_names_and_sees_widths(rename: str, width: int) -> None:
    def identity(name: str, features: int) -> str:
        return count(Network((4,), (Dense(name, features),))).identity

    assert identity(rename, width) == identity("dense", width)
    assert identity("dense", width) != identity("dense", width + 1)


def test_the_identity_separates_equal_counts_with_unequal_shapes() -> None:
    def network(*pools: int) -> Network:
        last = tuple(MaxPool(f"pool{i}", k, k) for i, k in enumerate(pools))
        return Network((1, 16), last)

    one, other = count(network(2, 4)), count(network(4, 2))
    assert (one.parameters, one.macs) == (other.parameters, other.macs)
    assert one.identity != other.identity


def test_a_residual_names_its_layers_and_then_itself() -> None:
    block = Residual("block", (ReLU("relu"),), (Conv("conv", 3, 1), BatchNorm("bn")))
    paths = [path for path, _ in output_shapes(Network(IMAGE, (block,)))]
    assert paths == ["block/relu", "block/conv", "block/bn", "block"]


def test_a_residual_without_shortcut_adds_its_input() -> None:
    assert after(Residual("block", (Conv("conv", 3, 3, pad=(1, 1)),))) == IMAGE


def test_parameters_are_named_as_the_examination_names_them() -> None:
    layers = (Conv("conv", 8, 3, groups=1), BatchNorm("bn"), Flatten("flat"), Dense("fc", 2))
    named = [entry for s in sites(Network((3, 5, 5), layers)) for entry in parameter_shapes(s)]
    assert named == [
        ("conv/weight", (8, 3, 3, 3)),
        ("conv/bias", (8,)),
        ("bn/gamma", (8,)),
        ("bn/beta", (8,)),
        ("fc/weight", (2, 72)),
        ("fc/bias", (2,)),
    ]


def test_flattening_adds_no_activations() -> None:
    layers = (ReLU("relu"), Flatten("flat"), Dense("fc", 7))
    assert count(Network((2, 3, 3), layers)).activations == 18 + 7


def test_another_input_shrinks_the_first_dense_layer() -> None:
    network = Network((3, 8, 8), (Flatten("flat"), Dense("fc", 10)))
    assert count(network, (3, 4, 4)).parameters == 3 * 4 * 4 * 10 + 10


@pytest.mark.parametrize(
    ("layer", "why"),
    [
        (Conv("it", 8, 33), "kernel of 33 does not fit"),
        (Conv("it", 8, 3, groups=2), "2 groups do not divide its 3 input and 8 output"),
        (Conv("it", 0, 3), "channels 0 is not positive"),
        (Conv("it", 8, 3, stride=0), "stride 0 is not positive"),
        (Conv("it", 8, 3, pad=(-1, 0)), "is negative"),
        (Dense("it", 10), "needs a flat input"),
        (MaxPool("it", 2, 2, pad=(0, 2)), "leaves a window no value"),
        (AveragePool("it", 33, 1), "does not fit"),
        (LRN("it", 4, 1e-4, 0.75, 1.0), "size 4 is not odd"),
        (Dropout("it", 1.0), "rate 1.0 is not in"),
        (ReLU("not a name"), "letters, digits and underscores"),
        (Residual("it", ()), "its body is empty"),
        (Residual("it", (Conv("conv", 4, 1),)), "which do not add"),
    ],
    ids=str,
)
def test_an_impossible_layer_is_refused_by_name(layer: object, why: str) -> None:
    with pytest.raises(ImpossibleNetwork, match=why) as refusal:
        after(layer)
    assert layer.name in str(refusal.value)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "layer",
    [Conv("it", 8, 1), MaxPool("it", 1, 1), GlobalAverage("it"), LRN("it", 3, 1e-4, 0.75, 1.0)],
    ids=str,
)
def test_a_layer_over_positions_refuses_a_flat_input(layer: object) -> None:
    with pytest.raises(ImpossibleNetwork, match="it needs spatial dimensions"):
        after(layer, shape=(12,))


def test_a_fault_within_a_residual_names_the_whole_path() -> None:
    with pytest.raises(ImpossibleNetwork, match="layer 'block/fc'"):
        after(Residual("block", (Dense("fc", 3),)))


def test_two_layers_of_one_name_are_refused() -> None:
    with pytest.raises(ImpossibleNetwork, match="another layer beside it has the same name"):
        after(ReLU("relu"), ReLU("relu"))


def test_a_body_and_its_shortcut_share_their_names() -> None:
    block = Residual("block", (ReLU("relu"),), (ReLU("relu"),))
    with pytest.raises(ImpossibleNetwork, match="layer 'block/relu'"):
        after(block)


def test_a_name_may_return_inside_a_residual() -> None:
    block = Residual("block", (ReLU("relu"),))
    assert after(ReLU("relu"), block, replace(block, name="block2")) == IMAGE


@pytest.mark.parametrize("shape", [(), (3, 0, 4), (1, 2, 3, 4, 5)])
def test_an_input_of_no_known_rank_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ImpossibleNetwork, match="layer 'input'"):
        after(ReLU("relu"), shape=shape)


def test_a_training_step_multiplies_thrice_but_for_what_nobody_needs() -> None:
    rest = (ReLU("r"), Flatten("f"), Dense("d", 5))
    plain = Network(IMAGE, (Conv("c", 4, 3), *rest))
    first, last = 4 * 27 * 30 * 30, 5 * 4 * 30 * 30
    assert macs_of_step(plain) == 2 * first + 3 * last
    normed = Network(IMAGE, (BatchNorm("n"), Conv("c", 4, 3), *rest))
    assert macs_of_step(normed) == 3 * (first + last)  # the norm's gamma needs that gradient


def test_both_branches_of_a_first_residual_need_no_input_gradient() -> None:
    block = Residual("b", (Conv("x", 4, 1), Conv("y", 4, 1)), (Conv("s", 4, 1),))
    macs = 4 * 3 * 32 * 32
    assert macs_of_step(Network(IMAGE, (block,))) == 2 * (macs + macs) + 3 * (4 * 4 * 32 * 32)
