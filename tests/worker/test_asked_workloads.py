"""Hold networks at another length to counts made by hand, and the tokens that they are fed."""

from __future__ import annotations

import pytest

from harness import plugins
from harness.worker import feed
from harness.worker.network.asked_workload import asked_workload, at_length, own_length
from harness.worker.network.rule import ImpossibleNetwork
from harness.worker.network.sequence_layers import Attention, Gather
from harness.worker.network.shapes import count, sites
from harness.worker.network.tokens import texts
from harness.worker.network.workload import TOKENS
from harness.worker.place import Place
from harness.worker.scale import Scale

ALONE = Place(rank=0, size=1, local_rank=0, local_size=1, host="here", launcher="none")
FED_TOKENS = [
    name for name in plugins.workload_names() if own_length(plugins.workload(name)) is not None
]


def masked(workload) -> tuple[int, ...]:
    found = [one.layer for one in sites(workload.network) if isinstance(one.layer, Gather)]
    return found[0].positions


@pytest.mark.parametrize("name", FED_TOKENS)
def test_a_network_at_its_own_length_is_the_one_that_is_described(name: str) -> None:
    described = plugins.workload(name)
    assert described.unit == TOKENS
    assert at_length(described, described.network.input[0]) is described


@pytest.mark.parametrize("length", [1, 128, 1024])
def test_gpt2_multiplies_weights_once_a_token_and_attention_by_the_length(length: int) -> None:
    found = at_length(plugins.workload("gpt2-124m"), length)
    attention = 12 * 2 * 768 * length
    assert found.macs == length * (123_532_032 + attention)
    assert found.parameters == count(found.network).parameters == 124_439_808
    assert found.data.samples == 9_035_582_198 // 1024 * 1024 // length


def test_a_network_that_turns_its_positions_takes_any_length() -> None:
    llama = at_length(plugins.workload("llama-3-2-1b"), 128)
    assert llama.macs == 128 * (1_235_746_816 + 536_870_912 * 128 // 8192)
    tiny = at_length(plugins.workload("tinyllama"), 100_000)
    assert tiny.network.input == (100_000,)
    assert count(tiny.network).parameters == 131_392


@pytest.mark.parametrize("length", [0, -3, 65, 10**12])
def test_no_network_is_stretched_beyond_what_it_holds(length: int) -> None:
    with pytest.raises(ImpossibleNetwork):
        at_length(plugins.workload("tinybert"), length)


def test_bert_masks_the_same_share_of_a_longer_text() -> None:
    described = plugins.workload("bert-base")
    long, short = at_length(described, 512), at_length(described, 64)
    assert len(masked(described)) == 20
    assert len(masked(long)) == 80  # as many as its authors allow of 512
    assert set(masked(long)) == {128 * part + one for part in range(4) for one in masked(described)}
    assert masked(short) == tuple(one for one in masked(described) if one < 64)


def test_more_tokens_than_positions_are_refused() -> None:
    with pytest.raises(ImpossibleNetwork, match="it holds 1024 positions of 1025"):
        at_length(plugins.workload("gpt2-124m"), 1025)


def test_the_smaller_network_of_the_gate_is_no_longer_than_what_is_timed() -> None:
    gpt2 = plugins.workload("gpt2-124m")
    assert at_length(gpt2, 512).shallow == gpt2.shallow
    assert at_length(gpt2, 32).shallow.input == (32,)


def test_a_longer_text_than_the_gate_can_afford_is_examined_at_one_that_it_can() -> None:
    tiny = plugins.workload("tinyllama")
    assert at_length(tiny, 512).shallow is None
    assert at_length(tiny, 4096).shallow.input == (512,)


@pytest.mark.parametrize("length", [16, 64, 200])
def test_a_rank_is_fed_texts_of_the_length_and_counts_their_tokens(length: int) -> None:
    workload = at_length(plugins.workload("tinyllama"), length)
    fed = feed.describe(workload, Scale(batch_per_device=3), seed=1, place=ALONE)
    drawn = texts(fed)
    assert len(drawn.tokens) == len(drawn.targets) == 3 * length
    assert list(drawn.tokens[1:length]) == list(drawn.targets[: length - 1])
    assert fed.work_per_rank == 3 * length


@pytest.mark.parametrize("name", ["gpt2-124m", "vit-b16", "bert-base", "tinyllama"])
def test_how_attention_is_computed_changes_nothing_that_is_counted(name: str) -> None:
    described = plugins.workload(name)
    asked = asked_workload(described, name, {"attention": "plain"})
    for network in (asked.network, asked.shallow):
        layers = [] if network is None else [one.layer for one in sites(network)]
        assert {one.form for one in layers if isinstance(one, Attention)} <= {"plain"}
    assert count(asked.network) == count(described.network)


def test_what_is_fed_no_tokens_counts_its_samples() -> None:
    workload = plugins.workload("tinycnn")
    fed = feed.describe(workload, Scale(batch_per_device=3), seed=1, place=ALONE)
    assert fed.work_per_rank == 3


def test_a_layer_alone_has_the_shape_that_it_has_at_the_length() -> None:
    name = "tinygpt/block1_attention/attention/forward"
    alone = asked_workload(plugins.workload("tinygpt"), name, {"sequence": 32})
    assert alone.training.network.input == (32, 192)
    assert alone.unit == "sequences"
