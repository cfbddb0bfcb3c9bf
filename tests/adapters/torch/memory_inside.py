"""What a step keeps for its backward pass falls where it is computed in parts, or again."""

import weakref

import torch

from harness.worker import place
from harness.worker.adapters.torch import settings
from harness.worker.adapters.torch.activity import TrainingActivity
from harness.worker.adapters.torch.training import Trainer
from tests.scales import fed
from workloads.tinygpt import WORKLOAD

BATCH = 16


class Kept:
    """Holds one tensor for the backward pass."""

    def __init__(self, tensor):
        self.tensor = tensor


class Memory:
    """Counts what is kept for backward passes at the same time."""

    def __init__(self):
        self.now = self.most = 0

    def keep(self, tensor):
        kept, size = Kept(tensor), tensor.numel() * tensor.element_size()
        self._change(size)
        weakref.finalize(kept, self._change, -size)
        return kept

    def _change(self, size):
        self.now += size
        self.most = max(self.most, self.now)


def kept_bytes(**factors):
    """Give the most bytes that a step keeps at once, and the weights after it."""
    alone = place.find({})
    trainer = Trainer(WORKLOAD, settings.apply(factors, {}, alone), 1)
    trainer.start_optimiser(BATCH)
    activity = TrainingActivity(trainer, fed(WORKLOAD, {"batch": BATCH}, alone), WORKLOAD.unit)
    memory = Memory()
    with torch.autograd.graph.saved_tensors_hooks(memory.keep, lambda kept: kept.tensor):
        activity.step()
    return memory.most, [one.detach().clone() for one in trainer.network.parameters()]


def test_micro_batches_keep_their_share_and_update_alike():
    whole, once = kept_bytes()
    parts, added = kept_bytes(accumulate=4)
    weights = sum(one.numel() * one.element_size() for one in once)
    assert parts < whole / 4 + 2 * weights, (parts, whole, weights)
    for one, other in zip(once, added, strict=False):
        torch.testing.assert_close(one, other, rtol=0, atol=2e-5)


def test_blocks_that_are_computed_twice_keep_what_enters_them_and_one_block_s_rest():
    whole, once = kept_bytes()
    less, twice = kept_bytes(recompute=True)
    assert less < 0.75 * whole, (less, whole)
    for one, other in zip(once, twice, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=2e-5)
