"""Find blocks by what they are made of, and count what is computed again of them."""

from __future__ import annotations

import pytest

from harness import plugins
from harness.worker.network.blocks import (
    computed_again,
    has_blocks,
    macs_computed_again,
    parts,
)
from harness.worker.network.layers import (
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    GlobalAverage,
    Layer,
    Network,
    Product,
    ReLU,
    Residual,
)
from harness.worker.network.shapes import count

PAD = (1, 1)


def blocks_of(name: str) -> list[list[str]]:
    found = parts(plugins.workload(name).network)
    return [[layer.name for layer in one.layers] for one in found if one.is_block]


@pytest.mark.parametrize(
    ("name", "number", "first"),
    [
        ("gpt2-124m", 12, ["block1_attention", "block1_dense"]),
        ("llama-3-1-8b", 32, ["block1_attention", "block1_dense"]),
        ("vit-b16", 12, ["block1_attention", "block1_dense"]),
        (
            *("bert-base", 12),
            ["block1_attention", "block1_attention_norm", "block1_dense", "block1_dense_norm"],
        ),
        ("resnet50", 16, ["stage1_block1", "stage1_block1_relu"]),
        ("resnet50-v1", 16, ["stage1_block1", "stage1_block1_relu"]),
        ("tinycnn", 1, ["block"]),
    ],
)
def test_blocks_are_those_that_a_network_s_authors_name(
    name: str, number: int, first: list[str]
) -> None:
    found = blocks_of(name)
    assert len(found) == number
    assert found[0] == first
    assert {len(one) for one in found} == {len(first)}


@pytest.mark.parametrize("name", ["gpt2-124m", "bert-base", "resnet50", "tinycnn", "alexnet"])
def test_parts_are_the_network_in_its_order(name: str) -> None:
    network = plugins.workload(name).network
    assert tuple(layer for one in parts(network) for layer in one.layers) == network.layers


@pytest.mark.parametrize("name", ["alexnet", "cosmoflow", "neuron-inverter"])
def test_a_network_without_residuals_has_no_blocks(name: str) -> None:
    network = plugins.workload(name).network
    assert not has_blocks(network)
    assert macs_computed_again(network, in_order=True) == 0


def test_a_residual_of_another_form_goes_on_with_the_block_before_it() -> None:
    narrow, wide = (Dense("a", 4),), (Dense("a", 4), ReLU("r"))
    forms = (narrow, narrow, wide, narrow, wide, wide)
    layers = [Residual(f"r{at}", body) for at, body in enumerate(forms)]
    network = Network((4,), (Dense("in", 4), *layers, Dense("out", 4)))
    found = [[layer.name for layer in one.layers] for one in parts(network) if one.is_block]
    assert found == [["r0"], ["r1", "r2"], ["r3", "r4"], ["r5"]]


def test_neither_names_nor_widths_make_another_block() -> None:
    bodies = ((Dense("a", 8), Dense("b", 4)), (Dense("c", 16), Dense("d", 4)))
    network = Network((4,), tuple(Residual(f"r{at}", one) for at, one in enumerate(bodies)))
    assert [len(one.layers) for one in parts(network)] == [1, 1]


# Of GPT-2's and Llama's blocks all is computed again but the last product, whose result is added;
# BERT's and ResNet's end in what looks at its input.
AGAIN = {
    "tinygpt": 2 * (3_670_016 - 64 * 64 * 256),
    "tinyllama": 2 * (3_670_016 - 64 * 64 * 192),
    "tinycnn": 2 * 16 * 16 * 16 * 16 * 9,
    "gpt2-124m": 12 * 1024 * (768 * 768 * 8 + 2 * 1024 * 768),
}


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("name", AGAIN)
def test_what_a_step_computes_again_is_counted(name: str, in_order: bool) -> None:
    network = plugins.workload(name).network
    assert macs_computed_again(network, in_order=in_order) == AGAIN[name]


def test_a_block_that_ends_in_a_norm_is_computed_again_as_a_whole() -> None:
    network = plugins.workload("tinybert").network
    blocks = Network(network.input, (*network.layers[:4], *parts(network)[1].layers))
    ends = Network(network.input, network.layers[:4])
    each = count(blocks).macs - count(ends).macs
    assert macs_computed_again(network, in_order=False) == 2 * each


def dropping(*, drops: bool = True, shortcut: tuple[Layer, ...] = ()) -> Network:
    """Give a network whose one block ends in a product, dropped or not."""
    end = (Dense("second", 4), *([Dropout("drop", 0.5)] if drops else []))
    body = (Dense("first", 4), ReLU("relu"), *end)
    return Network((4,), (Dense("in", 4), Residual("block", body, shortcut)))


def test_what_goes_in_order_makes_what_stands_before_the_last_that_is_needed() -> None:
    """A mask is drawn behind a product whose result nobody needs again."""
    needed = {"block/first", "block/relu", "block/drop"}
    assert computed_again(dropping(), in_order=False) == needed
    assert computed_again(dropping(), in_order=True) == {*needed, "block/second"}
    assert computed_again(dropping(drops=False), in_order=True) == needed - {"block/drop"}


def test_a_product_in_the_shortcut_stands_behind_the_body() -> None:
    network = dropping(drops=False, shortcut=(Dense("projection", 4),))
    assert computed_again(network, in_order=False) == {"block/first", "block/relu"}
    wide = {"block/first", "block/relu", "block/second"}
    assert computed_again(network, in_order=True) == wide


def test_both_factors_of_a_product_are_needed_again() -> None:
    gated = Product("gated", (Dense("body", 4),), (Dense("gate", 4),))
    network = Network((4,), (Dense("in", 4), Residual("block", (gated, Dense("out", 4)))))
    again = {"block/gated/body", "block/gated/gate", "block/gated"}
    assert computed_again(network, in_order=False) == again
    assert computed_again(network, in_order=True) == again


def test_what_stands_outside_of_blocks_is_computed_once() -> None:
    body = (Conv("conv", 4, 3, pad=PAD), BatchNorm("norm"))
    behind = (Conv("last", 4, 3), BatchNorm("last_norm"), GlobalAverage("average"), Dense("fc", 2))
    network = Network((4, 8, 8), (Conv("in", 4, 3, pad=PAD), Residual("block", body), *behind))
    assert computed_again(network, in_order=True) == {"block/conv", "block/norm"}
