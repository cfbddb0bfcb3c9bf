"""Describe feeds under factors and places."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from harness import plugins
from harness.worker.feed import Classes, TokenAndPairClasses, TokenClasses, Vectors, describe
from harness.worker.network.layers import Conv, Network
from harness.worker.network.tokens import texts
from harness.worker.place import Place
from harness.worker.scale import Scale
from workloads import neuron_inverter, nothing, tinybert, tinycnn, tinygpt

ALONE = Place(0, 1, 0, 1, "n1", "none")
SECOND = Place(1, 4, 1, 4, "n1", "bakeoff")
FOUR = Scale(nodes=2, ranks_per_node=2, devices_per_rank=2, batch_per_device=16)


def test_a_classifier_is_fed_class_numbers() -> None:
    feed = describe(tinycnn.WORKLOAD, Scale(batch_per_device=16), seed=7, place=ALONE)
    assert (feed.input, feed.targets) == ((3, 32, 32), Classes(10))


def test_a_regression_is_fed_vectors() -> None:
    feed = describe(neuron_inverter.WORKLOAD, Scale(), seed=7, place=ALONE)
    assert (feed.input, feed.targets) == ((4, 1600), Vectors(15))


def test_a_workload_without_a_network_has_no_input() -> None:
    feed = describe(nothing.WORKLOAD, Scale(), seed=7, place=ALONE)
    assert (feed.input, feed.targets) == ((), None)


def test_every_rank_draws_its_own() -> None:
    one = describe(tinycnn.WORKLOAD, FOUR, seed=7, place=SECOND)
    other = describe(tinycnn.WORKLOAD, FOUR, seed=7, place=replace(SECOND, rank=2))
    assert one.seed != other.seed


def test_a_rank_takes_the_batches_of_its_devices() -> None:
    feed = describe(tinycnn.WORKLOAD, FOUR, seed=7, place=SECOND)
    assert (feed.batch_per_rank, feed.batch_per_step) == (32, 128)


def test_what_is_only_saved_is_trained_on_two_samples_a_device() -> None:
    workload = plugins.workload("checkpoint-tinycnn")
    feed = describe(workload, FOUR, seed=7, place=SECOND)
    assert (feed.batch_per_rank, feed.batch_per_step) == (4, 16)


def test_ranks_that_do_not_know_of_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="a job of 4 ranks was started with 1"):
        describe(tinycnn.WORKLOAD, FOUR, seed=7, place=ALONE)


def test_tokens_come_with_those_that_follow_them_and_as_often_as_in_language() -> None:
    feed = describe(tinygpt.WORKLOAD, Scale(), seed=7, place=ALONE)
    assert (feed.input, feed.vocabulary, feed.targets) == ((64,), 512, TokenClasses(64, 512))
    feed = replace(feed, scale=Scale(batch_per_device=100))
    drawn = texts(feed)
    assert drawn == texts(feed)
    assert drawn != texts(replace(feed, seed=8))
    assert drawn.tokens[1:64] == drawn.targets[:63]
    counts = Counter(drawn.tokens)
    assert max(counts) < 512
    assert min(counts) == 0
    assert 1.6 < counts[0] / counts[1] < 2.5


def test_two_heads_are_asked_for_tokens_and_for_whether_a_pair_belongs_together() -> None:
    feed = describe(tinybert.WORKLOAD, Scale(batch_per_device=4), seed=7, place=ALONE)
    assert feed.targets == TokenAndPairClasses(5, 512)
    drawn = texts(feed)
    assert (len(drawn.tokens), len(drawn.targets)) == (4 * 32, 4 * 6)
    assert drawn.targets[5::6].tolist() == [0, 1, 0, 1]
    assert drawn.targets[:5].tolist() != drawn.targets[6:11].tolist()


def test_a_loss_of_two_heads_needs_two() -> None:
    with pytest.raises(ValueError, match="tinygpt: its loss needs two heads, one of two numbers"):
        describe(
            replace(tinygpt.WORKLOAD, loss="token-and-pair-cross-entropy"),
            Scale(),
            seed=7,
            place=ALONE,
        )


def test_a_loss_of_tokens_needs_positions() -> None:
    with pytest.raises(ValueError, match="needs an output at each position"):
        describe(
            replace(tinycnn.WORKLOAD, loss="token-cross-entropy"), Scale(), seed=7, place=ALONE
        )


def test_a_loss_over_positions_is_refused() -> None:
    network = Network((3, 8, 8), (Conv("conv", 4, 1),))
    with pytest.raises(ValueError, match="needs a flat output"):
        describe(replace(tinycnn.WORKLOAD, network=network), Scale(), seed=7, place=ALONE)
