"""Hold the proof of ranks that train together to its purpose, in processes of their own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.gate.jobs import Examiner
from harness.gate.proof.untrained import Untrained
from harness.worker.scale import Scale
from tests.gate.proof import dropping
from tests.gate.proof.conftest import SEEDS, bar
from tests.gate.proof.planted.fault import Fault
from tests.gate.proof.planted.ranks import of_jax, of_tensorflow, of_torch
from tests.gate.proof.rank_trials import PLATFORM, RankTrials
from workloads import tinycnn, tinygpt

pytestmark = [pytest.mark.framework, pytest.mark.timeout(300)]

NETWORKS = {"tinycnn": tinycnn, "dropping": dropping}
TWO_RANKS = Scale(ranks_per_node=2, batch_per_device=8)
TWO_DEVICES = Scale(devices_per_rank=2, batch_per_device=8)
PLANTED: dict[tuple[str, str], tuple[Scale, str, dict[str, Fault]]] = {
    ("torch", "ddp"): (TWO_RANKS, of_torch.FOLDER, of_torch.FAULTS),
    ("jax", "data-parallel"): (TWO_RANKS, of_jax.FOLDER, of_jax.FAULTS),
    ("tensorflow", "multiworker"): (TWO_RANKS, of_tensorflow.FOLDER, of_tensorflow.MULTIWORKER),
    ("tensorflow", "mirrored"): (TWO_DEVICES, of_tensorflow.FOLDER, of_tensorflow.MIRRORED),
    ("tensorflow", "parameter-server"): (
        TWO_RANKS,
        of_tensorflow.FOLDER,
        of_tensorflow.PARAMETER_SERVER,
    ),
}
IN_CI = {
    ("ddp", "gradients that are not exchanged"),
    ("ddp", "gradients exchanged in fp16"),
    ("mirrored", "ranks that are fed the same samples"),
}
"""The others are left to the long form: each takes workers of its own."""


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RankTrials]:
    with Examiner(PLATFORM, tmp_path_factory.mktemp("scratch")) as examiner:
        yield RankTrials(examiner, tmp_path_factory.mktemp)


def every_fault() -> Iterator[Any]:
    """Name each strategy with each of its faults."""
    for (name, strategy), (_, _, faults) in PLANTED.items():
        for fault in faults:
            marks = [] if (strategy, fault) in IN_CI else [pytest.mark.long]
            yield pytest.param(name, strategy, fault, id=f"{strategy}: {fault}", marks=marks)


@pytest.mark.planted
@pytest.mark.parametrize(("name", "strategy", "fault"), list(every_fault()))
def test_a_fault_of_ranks_that_train_together_is_caught_and_named(
    name: str, strategy: str, fault: str, trials: RankTrials, planted: Callable[..., None]
) -> None:
    scale, folder, faults = PLANTED[name, strategy]
    network, file, change, words = faults[fault]
    named = None
    try:
        trials.prove(name, strategy, NETWORKS[network], {folder + file: change}, scale=scale)
    except Untrained as why:
        named = str(why)
    planted(name, fault, "the proof", named)
    assert named is not None
    assert re.search(words, named), named


SHORT = {"ddp", "mirrored"}


def every_clean() -> Iterator[Any]:
    """Name each strategy with networks, precisions and scales; most are of the long form."""
    for (name, strategy), (scale, _, _) in PLANTED.items():
        for network in NETWORKS:
            for precision in ("fp32", "bf16"):
                is_short = (network, precision) == ("tinycnn", "fp32") and strategy in SHORT
                marks = [] if is_short else [pytest.mark.long]
                yield pytest.param(name, strategy, network, precision, scale, marks=marks)


@pytest.mark.parametrize(("name", "strategy", "network", "precision", "scale"), list(every_clean()))
def test_ranks_that_train_together_are_proved(
    name: str, strategy: str, network: str, precision: str, scale: Scale, trials: RankTrials
) -> None:
    found = trials.prove(name, strategy, NETWORKS[network], scale=scale, precision=precision)
    assert found.error < (1e-3 if precision == "fp32" else 0.1)


SEEDED = [("torch", "ddp"), ("jax", "data-parallel"), ("tensorflow", "multiworker")]
IN_SHORT, *IN_LONG = SEEDED
EACH = pytest.mark.parametrize(
    ("name", "strategy"),
    [IN_SHORT, *(pytest.param(*one, marks=pytest.mark.long) for one in IN_LONG)],
)


@pytest.mark.long
@pytest.mark.seeded
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("name", "strategy"), SEEDED)
def test_two_ranks_are_proved_from_each_seed(
    name: str, strategy: str, seed: int, trials: RankTrials, clean: Callable[..., None]
) -> None:
    way = f"{name}, 2 ranks ({strategy})"
    clean(way, "tinycnn", seed, "fp32")
    error = trials.prove(name, strategy, tinycnn, scale=TWO_RANKS, seed=seed).error
    clean(way, "tinycnn", seed, "fp32", error)
    assert error < bar("fp32")


@EACH
def test_eight_ranks_on_one_sample_each_are_proved(
    name: str, strategy: str, trials: RankTrials
) -> None:
    scale = Scale(ranks_per_node=8)
    assert trials.prove(name, strategy, tinycnn, scale=scale).error < 1e-3


@pytest.mark.parametrize("each", [pytest.param(8, marks=pytest.mark.long), 1])
@EACH
def test_two_ranks_on_texts_are_proved(
    name: str, strategy: str, each: int, trials: RankTrials
) -> None:
    """Of which some positions are masked: ranks take the mean each of its own."""
    scale = Scale(ranks_per_node=2, batch_per_device=each)
    assert trials.prove(name, strategy, tinygpt, scale=scale).error < 1e-3
