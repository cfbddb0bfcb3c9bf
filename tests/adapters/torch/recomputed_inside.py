"""Blocks that torch computes twice change nothing but what is kept and multiplied."""

import contextlib
from dataclasses import replace
from unittest import mock

import torch

from harness.worker import place
from harness.worker.adapters.torch import settings
from harness.worker.adapters.torch.activity import TrainingActivity
from harness.worker.adapters.torch.lowering import recomputed
from harness.worker.adapters.torch.lowering.canonical import named
from harness.worker.adapters.torch.training import Trainer
from harness.worker.facts.multiplications import counted
from harness.worker.scale import Scale
from tests.adapters.residuals import WORKLOAD as RESIDUALS
from tests.scales import fed
from workloads import tinybert, tinycnn, tinygpt, tinyllama

BATCH = 4
ALONE = place.find({})
NETWORKS = (
    *(tinygpt.WORKLOAD, tinyllama.WORKLOAD, tinybert.WORKLOAD),
    *(tinycnn.WORKLOAD, RESIDUALS),
)


def stepping(workload, **factors):
    """Open a step in float64, unless asked for a precision."""
    chosen = settings.apply(factors, {}, ALONE)
    if "precision" not in factors:
        chosen = replace(chosen, precision="float64")
    trainer = Trainer(workload, chosen, 1)
    trainer.start_optimiser(BATCH)
    activity = TrainingActivity(trainer, fed(workload, {"batch": BATCH}, ALONE), workload.unit)
    if "precision" not in factors:
        activity.batch = tuple(
            one.double() if one.is_floating_point() else one for one in activity.batch
        )
    return activity


def trained(workload, **factors):
    """Give all that two steps left of weights and running statistics."""
    activity = stepping(workload, **factors)
    torch.manual_seed(3)
    for _ in range(2):
        activity.step()
    return {name: one.detach().clone() for name, one in named(activity.trainer.network)}


def distance(workload, **factors):
    """Give how far off a step is that computes blocks twice, of what it leaves."""
    once, twice = trained(workload, **factors), trained(workload, recompute=True, **factors)
    assert once.keys() == twice.keys()
    return max(float((once[name] - twice[name]).abs().max()) for name in once)


def test_blocks_that_are_computed_twice_train_alike():
    for workload in NETWORKS:
        assert distance(workload) < 1e-12, workload.name


def test_micro_batches_with_blocks_that_are_computed_twice_train_alike():
    assert distance(tinygpt.WORKLOAD, accumulate=2) < 1e-12


def test_masks_that_are_drawn_again_are_another_step():
    real = recomputed.checkpoint

    def forgetting(*given, **how):
        return real(*given, **{**how, "preserve_rng_state": False})

    with mock.patch.object(recomputed, "checkpoint", forgetting):
        assert distance(RESIDUALS) > 1e-6
        assert distance(tinycnn.WORKLOAD) < 1e-12  # it drops nothing


def test_running_statistics_that_move_twice_are_seen():
    def moving(_norms):
        return contextlib.nullcontext()

    with mock.patch.object(recomputed, "_standing", moving):
        assert distance(RESIDUALS) > 1e-6


def test_what_is_multiplied_again_is_what_was_reckoned():
    for workload in NETWORKS:
        for factors in ({}, {"precision": "bf16"}):
            asked = {"recompute": True, **factors}
            activity = stepping(workload, **{"precision": "fp32", **asked})
            activity.step()
            scale = Scale(batch_per_device=BATCH)
            told = counted(activity, workload, scale, asked)["multiplications"]
            assert told["counted"] == told["asked"], (workload.name, factors, told)
            assert told["again"] > 0


def test_without_recomputing_that_many_are_missed():
    activity = stepping(tinygpt.WORKLOAD, precision="fp32")
    scale = Scale(batch_per_device=BATCH)
    told = counted(activity, tinygpt.WORKLOAD, scale, {"recompute": True})["multiplications"]
    assert told["asked"] - told["counted"] == told["again"]
