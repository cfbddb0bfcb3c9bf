"""Describe feeds under factors and places."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.worker.feed import Classes, Feed, Vectors, describe
from harness.worker.network.layers import Conv, Network
from harness.worker.place import Place
from workloads import neuron_inverter, nothing, tinycnn

ALONE = Place(0, 1, 0, 1, "n1", "none")
SECOND = Place(1, 4, 1, 4, "n1", "bakeoff")


def test_a_classifier_is_fed_class_numbers() -> None:
    feed = describe(tinycnn.WORKLOAD, {"batch": 16}, 7, ALONE)
    assert feed == Feed(7, 16, 16, (3, 32, 32), Classes(10))


def test_a_regression_is_fed_vectors() -> None:
    feed = describe(neuron_inverter.WORKLOAD, {"batch": 2}, 7, ALONE)
    assert (feed.input, feed.targets) == ((4, 1600), Vectors(15))


def test_a_workload_without_a_network_has_no_input() -> None:
    feed = describe(nothing.WORKLOAD, {"batch": 32}, 7, ALONE)
    assert (feed.input, feed.targets) == ((), None)


def test_every_rank_draws_its_own() -> None:
    factors = {"batch": 16}
    one = describe(tinycnn.WORKLOAD, factors, 7, SECOND)
    other = describe(tinycnn.WORKLOAD, factors, 7, replace(SECOND, rank=2))
    assert one.seed != other.seed


def test_a_batch_counts_per_device() -> None:
    feed = describe(tinycnn.WORKLOAD, {"batch": 16, "devices_per_rank": 2}, 7, SECOND)
    assert (feed.batch, feed.global_batch) == (32, 128)


def test_a_global_batch_is_shared_by_the_ranks() -> None:
    factors = {"batch": None, "global_batch": 64, "devices_per_rank": 1}
    feed = describe(tinycnn.WORKLOAD, factors, 7, SECOND)
    assert (feed.batch, feed.global_batch) == (16, 64)


def test_a_global_batch_that_does_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="a global batch of 6 does not divide over 4 ranks"):
        describe(tinycnn.WORKLOAD, {"global_batch": 6}, 7, SECOND)


def test_a_loss_over_positions_is_refused() -> None:
    network = Network((3, 8, 8), (Conv("conv", 4, 1),))
    with pytest.raises(ValueError, match="needs a flat output"):
        describe(replace(tinycnn.WORKLOAD, network=network), {}, 7, ALONE)
