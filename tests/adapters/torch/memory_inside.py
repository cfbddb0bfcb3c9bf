"""What a step keeps for its backward pass falls where it is computed in parts, or again."""

import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

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


class Live(TorchDispatchMode):
    """Counts the bytes of what operators make that lie in memory at the same time."""

    def __init__(self):
        super().__init__()
        self.now = self.most = 0
        self.known = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for one in tree_leaves(made):
            if isinstance(one, torch.Tensor):
                self._watch(one.untyped_storage())
        return made

    def _watch(self, storage):
        key, size = storage._cdata, storage.nbytes()
        if key not in self.known:
            self.known.add(key)
            self.now += size
            self.most = max(self.most, self.now)
            weakref.finalize(storage, self._free, key, size)

    def _free(self, key, size):
        self.known.discard(key)
        self.now -= size


def stepping(**factors):
    alone = place.find({})
    trainer = Trainer(WORKLOAD, settings.apply(factors, {}, alone), 1)
    trainer.start_optimiser(BATCH)
    return TrainingActivity(trainer, fed(WORKLOAD, {"batch": BATCH}, alone), WORKLOAD.unit)


def weights_of(activity):
    return [one.detach().clone() for one in activity.trainer.network.parameters()]


def kept_bytes(**factors):
    """Give the most bytes that a step keeps at once for its gradients, and the weights after it."""
    activity, memory = stepping(**factors), Memory()
    with torch.autograd.graph.saved_tensors_hooks(memory.keep, lambda kept: kept.tensor):
        activity.step()
    return memory.most, weights_of(activity)


def live_bytes(**factors):
    """Give the most bytes that a step makes and holds at once, and the weights after it."""
    activity = stepping(**factors)
    with Live() as memory:
        activity.step()
    return memory.most, weights_of(activity)


def test_micro_batches_keep_their_share_and_update_alike():
    whole, once = kept_bytes()
    parts, added = kept_bytes(accumulate=4)
    weights = sum(one.numel() * one.element_size() for one in once)
    assert parts < whole / 4 + 2 * weights, (parts, whole, weights)
    for one, other in zip(once, added, strict=False):
        torch.testing.assert_close(one, other, rtol=0, atol=2e-5)


def test_blocks_that_are_computed_twice_hold_less_and_update_alike():
    whole, once = live_bytes()
    less, twice = live_bytes(recompute=True)
    assert less < 0.75 * whole, (less, whole)
    for one, other in zip(once, twice, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=2e-5)
