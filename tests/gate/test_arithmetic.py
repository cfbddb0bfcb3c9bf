"""Hold the gate's arithmetic to what its words say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.gate import layers, tolerances
from harness.gate.tensors import draws, reduced_size, sensitive_inputs
from harness.worker.network.layers import (
    LRN,
    BatchNorm,
    Dense,
    GlobalAverage,
    LeakyReLU,
    MaxPool,
    Network,
    ReLU,
    Scale,
    Tanh,
)
from harness.worker.network.rule import ImpossibleNetwork
from harness.worker.network.sequence_layers import GELU
from harness.worker.network.shapes import sites
from tests.gate.network import WORKLOAD
from workloads import alexnet, cosmoflow_lee, resnet50, tinycnn


def test_an_error_is_relative_to_the_largest_value_not_to_each() -> None:
    reference = np.array([100.0, 1e-12])
    assert tolerances.error(reference + np.array([0, 1e-9]), reference) == pytest.approx(1e-11)


def test_a_gradient_that_is_only_rounding_has_no_error() -> None:
    least = tolerances.floor([np.array([3.0, 4.0])])
    assert least == pytest.approx(5e-9)
    assert tolerances.error(np.array([1e-15]), np.array([-1e-15]), floor=least) == 0
    assert tolerances.error(np.array([1e-3]), np.array([-1e-15]), floor=least) > 1


def test_wrong_shapes_and_missing_numbers_are_infinitely_off() -> None:
    assert tolerances.error(np.zeros(2), np.zeros(3)) == math.inf
    assert tolerances.error(np.array([np.nan]), np.array([1.0])) == math.inf
    assert tolerances.error(np.array([1.0]), np.array([0.0])) == math.inf


def test_a_sum_that_is_zero_in_exact_arithmetic_is_held_to_the_sizes_of_its_terms() -> None:
    stream = np.random.default_rng(2)
    spikes = stream.random((3, 2, 1_000)) ** 50
    zero = draws.to("fp32", spikes - spikes.mean(axis=(0, 2), keepdims=True))
    assert tolerances.size_of_sums(zero, "fp32") == pytest.approx(
        np.abs(zero).sum(axis=(0, 2)).max()
    )
    assert tolerances.size_of_sums(zero + 1e-5, "fp32") < np.abs(zero).sum(axis=(0, 2)).max() / 10
    noise = stream.standard_normal((3, 2, 1_000))
    assert tolerances.size_of_sums(noise, "fp32") == pytest.approx(math.sqrt(3_000), rel=0.05)


def test_a_norm_of_values_far_from_zero_may_lose_the_digits_that_their_mean_takes() -> None:
    stream = np.random.default_rng(3)
    wide = draws.to("fp32", stream.standard_normal((3, 8, 1, 1)) + 100)
    gamma, slope = np.ones(8), stream.standard_normal((3, 8, 1, 1))

    def normalised(values):
        centred = values - values.mean(axis=0, keepdims=True)
        return centred / np.sqrt(np.square(centred).mean(axis=0, keepdims=True) + 1e-5)

    expected, made = normalised(wide), normalised(wide.astype(np.float32)).astype(float)
    allowed = tolerances.layer_tolerance("fp32", 3)
    size = tolerances.sizes_of_norm(wide, slope, gamma, 1e-5)["output"]
    assert tolerances.error(made, expected) > allowed > tolerances.error(made, expected, scale=size)
    usual = tolerances.sizes_of_norm(wide - 100, slope, gamma, 1e-5)["output"]
    assert tolerances.error(1.0001 * expected, expected, scale=usual) > allowed


def test_narrower_precisions_are_allowed_more() -> None:
    allowed = [tolerances.layer_tolerance(name, 100) for name in ("fp32", "fp16", "bf16")]
    assert allowed == sorted(allowed)
    assert tolerances.network_tolerance("bf16", 50, 100) < 1


def test_a_biased_variance_is_found_from_the_corrected_one() -> None:
    before, batches, count = np.array([2.0]), [0.5, 0.7, 0.2], 4
    corrected = biased = before
    for batch in batches:
        corrected = 0.9 * corrected + 0.1 * batch * count / (count - 1)
        biased = 0.9 * biased + 0.1 * batch
    found = tolerances.biased_variance(corrected, before, momentum=0.1, updates=3, count=count)
    np.testing.assert_allclose(found, biased)


def test_a_running_variance_is_held_to_what_one_batch_adds_to_it() -> None:
    inputs = np.random.default_rng(4).standard_normal((4, 8, 32, 32))
    batch, size = tolerances.moments(inputs)["variance"]
    before = np.full(8, 1.2)
    moved = 0.9 * before + 0.1 * batch
    allowed = tolerances.layer_tolerance("fp32", 4_096)
    narrow = moved.astype(np.float32).astype(float)
    assert tolerances.moved_error(narrow, before, batch, 0.1, size) == 0
    biased = 0.9 * before + 0.1 * inputs.var(axis=(0, 2, 3))
    assert tolerances.error(biased, moved) < allowed  # hidden by what was there before
    assert tolerances.moved_error(biased, before, batch, 0.1, size) > allowed
    assert tolerances.moved_error(moved[:1], before, batch, 0.1, size) == math.inf


@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
def test_part_of_a_layer_s_inputs_is_brought_to_where_its_constant_tells(precision) -> None:
    inputs = 3 + np.random.default_rng(5).standard_normal((4, 6, 9, 9))
    for layer, other, at in (
        (BatchNorm("n", 1e-5), BatchNorm("n", 4e-5), 1),
        (LRN("l", 5, 1e-4, 0.75, 2.0), LRN("l", 5, 1e-4, 0.75, 1.0), 0),
        (LeakyReLU("r", 0.01), LeakyReLU("r", 0.02), 0),
    ):
        told = draws.to(precision, sensitive_inputs.with_sensitive_part(layer, inputs))
        plain, brought = sensitive_inputs.parts(layer, inputs.shape)
        assert (plain.axis, brought.axis) == (at, at)
        assert np.array_equal(plain.of(told), draws.to(precision, plain.of(inputs)))
        right, wrong = (brought.of(_computed(one, told)) for one in (layer, other))
        assert tolerances.error(wrong, right) > 10 * tolerances.layer_tolerance(precision, 324)
    assert np.array_equal(sensitive_inputs.with_sensitive_part(ReLU("r"), inputs), inputs)
    assert sensitive_inputs.parts(ReLU("r"), inputs.shape) == [sensitive_inputs.TensorPart()]


def _computed(layer, x):
    if isinstance(layer, BatchNorm):
        axes = (0, 2, 3)
        deviation = np.sqrt(x.var(axis=axes, keepdims=True) + layer.epsilon)
        return (x - x.mean(axis=axes, keepdims=True)) / deviation
    if isinstance(layer, LRN):
        padded = np.pad(np.square(x), ((0, 0), (2, 2), (0, 0), (0, 0)))
        total = sum(padded[:, start : start + x.shape[1]] for start in range(layer.size))
        return x * (layer.k + layer.alpha * total) ** -layer.beta
    return np.where(x > 0, x, layer.slope * x)


def test_a_dropout_is_held_to_its_scale_and_its_rate() -> None:
    stream = np.random.default_rng(1)
    given = stream.standard_normal(10_000) + 3
    dropped = stream.random(10_000) < 0.25
    made = np.where(dropped, 0, given / 0.75)
    assert tolerances.dropout_fault(given, made, 0.25, 1e-6) is None
    assert "drops" in str(tolerances.dropout_fault(given, given / 0.75, 0.25, 1e-6))
    assert "what stays" in str(
        tolerances.dropout_fault(given, np.where(dropped, 0, given), 0.25, 1e-6)
    )


def test_a_dropout_has_one_mask_for_both_passes_and_another_for_each_sample() -> None:
    stream = np.random.default_rng(1)
    given, slope = stream.standard_normal((2, 4, 100))
    mask, another = stream.random((2, 4, 100)) < 0.75
    given[:, :3], slope[:, 3:6] = 0, 0  # tell nothing

    def fault(forward, backward):
        return tolerances.mask_fault((given, given * forward), (slope, slope * backward), 0.25)

    assert fault(mask, mask) is None
    assert "drops others than the output does" in str(fault(mask, another))
    assert fault(mask[:1], mask[:1]) == "one mask is shared by all samples"
    few = tolerances.mask_fault(*[(one[:2, 3:12], one[:2, 3:12]) for one in (given, slope)], 0.25)
    assert few is None


def test_only_what_adds_up_gets_the_slack_of_sums() -> None:
    words = (Scale("s", 2.0), LeakyReLU("r", 0.3), MaxPool("p", 3, 2), GlobalAverage("a"))
    walked = sites(Network((2, 99, 99), words))
    assert [layers.summed(site, 4) for site in walked] == [0, 0, 4, 49 * 49]
    assert tolerances.layer_tolerance("fp32", 0) < 0.00004 / 0.3


def test_a_gelu_by_tanh_may_lose_what_its_slope_multiplies() -> None:
    """JAX's gradient of gpt2-124m was 25 roundings off, and TensorFlow's is up to 63."""
    by_tanh, by_erf = sites(Network((4, 8), (GELU("t", tanh=True), GELU("e", tanh=False))))
    allowed = [
        tolerances.layer_tolerance("fp32", layers.summed(one, 1), is_chain=True) / 2.0**-24
        for one in (by_tanh, by_erf)
    ]
    assert allowed[0] > 63
    assert allowed[1] < 25


def test_draws_do_not_depend_on_other_layers() -> None:
    assert np.array_equal(draws.normal("a/weight", (3, 2)), draws.normal("a/weight", (3, 2)))
    assert not np.array_equal(draws.normal("a/weight", (3,)), draws.normal("b/weight", (3,)))


def test_every_parameter_and_statistic_is_drawn_in_float32() -> None:
    drawn = dict(draws.initial(WORKLOAD.network))
    assert {"block/bn1/gamma", "block/bn1/variance", "fc/bias"} <= set(drawn)
    assert all(np.array_equal(draws.to("fp32", one), one) for one in drawn.values())


@pytest.mark.parametrize("shape", [(2, 3, 9), (2, 3, 8, 7), (2, 2, 6, 5, 7)])
def test_no_window_of_a_pool_holds_equal_values_in_any_precision(shape) -> None:
    kernel = 3
    values = draws.to("bf16", draws.distinct("pool", shape, kernel))
    windows = np.lib.stride_tricks.sliding_window_view(
        values, (kernel,) * (len(shape) - 2), axis=tuple(range(2, len(shape)))
    )
    flat = np.sort(windows.reshape(-1, kernel ** (len(shape) - 2)))
    assert np.all(np.diff(flat) > 0)


def test_rounding_to_a_precision_goes_to_the_nearest_and_ties_to_even() -> None:
    given = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-7, -1 - 2**-8 - 2**-20])
    expected = np.array([1.0, 1.0, 1 + 2**-6, 1 + 2**-7, -1 - 2**-7])
    assert np.array_equal(draws.to("bf16", given), expected)


def test_large_networks_are_examined_small_and_small_ones_whole() -> None:
    assert reduced_size.reduced(tinycnn.WORKLOAD.network) is None
    assert reduced_size.reduced(resnet50.WORKLOAD.network) == (3, 64, 64)
    assert reduced_size.reduced(alexnet.WORKLOAD.network) == (3, 96, 96)
    shape = reduced_size.reduced(cosmoflow_lee.WORKLOAD.network)
    try:
        assert sites(cosmoflow_lee.WORKLOAD.network, shape)
    except ImpossibleNetwork as fault:
        pytest.fail(str(fault))


def test_what_stays_heavy_at_its_smallest_gets_fewer_samples_and_updates() -> None:
    effort = [
        (reduced_size.samples(one.WORKLOAD.network), reduced_size.updates(one.WORKLOAD.network))
        for one in (alexnet, resnet50, cosmoflow_lee)
    ]
    assert effort == [(2, 5), (4, 5), (3, 2)]


def test_what_feeds_a_tanh_is_drawn_small_enough_to_leave_it_a_slope() -> None:
    network = Network((64,), (Dense("fc1", 64), Dense("fc2", 4), Tanh("tanh")))
    drawn = dict(draws.initial(network))
    large = 6 * draws.normal("input", (8, 64))
    assert np.abs(large @ drawn["fc1/weight"].T).max() > 10
    assert np.abs(large @ drawn["fc2/weight"].T).max() < 4
