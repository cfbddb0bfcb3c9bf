"""Hold what hooks say of exchanging gradients to a group of one, slowed down at will."""

import contextlib
import gc
import tempfile
import time
import weakref

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from harness.worker import place
from harness.worker.adapters.torch import settings
from harness.worker.adapters.torch.activity import TrainingActivity
from harness.worker.adapters.torch.strategies import exchange_hooks
from harness.worker.adapters.torch.strategies.ddp import DataParallel
from harness.worker.adapters.torch.training import Trainer
from tests.scales import fed
from workloads import tinygpt
from workloads.tinycnn import WORKLOAD

LATE_S = 0.05


def watched(communicates=True, late_s=0.0, training=WORKLOAD, accumulate=1):
    """Train in a group of one, whose exchanges take so long, and give what hooks say."""
    exchange = distributed.all_reduce

    def slow(*given, **named):
        time.sleep(late_s)
        return exchange(*given, **named)

    alone = place.find({})
    with a_group_of_one():
        distributed.all_reduce = slow
        try:
            applied = settings.apply({"accumulate": accumulate}, {}, alone)
            trainer = Trainer(training, applied, 1, DataParallel(applied, None, communicates))
            trainer.start_optimiser(4)
            described = fed(training, {"batch": 4}, alone)
            activity = TrainingActivity(trainer, described, "images")
            activity.step()
            return exchange_hooks.watched(activity).get("exchange_hooks"), trainer
        finally:
            distributed.all_reduce = exchange


@contextlib.contextmanager
def a_group_of_one():
    with tempfile.TemporaryDirectory() as folder:
        distributed.init_process_group(
            "gloo", init_method="file://" + folder + "/meeting", rank=0, world_size=1
        )
        try:
            yield
        finally:
            distributed.destroy_process_group()


def test_every_gradient_is_seen_once_a_step():
    told, trainer = watched()
    assert told["messages"] >= 1
    assert told["bytes"] == 4 * WORKLOAD.parameters, told
    assert 0 <= told["exposed_s"] < told["step_s"], told
    assert all(torch.isfinite(one).all() for one in trainer.network.parameters())


def test_the_gradients_of_micro_batches_are_exchanged_once_a_step():
    told, _ = watched(training=tinygpt.WORKLOAD, accumulate=2)
    assert told["bytes"] == 4 * tinygpt.WORKLOAD.parameters, told


def test_a_strategy_keeps_nothing_that_was_trained_until_the_group_ends():
    """What ends with the group waits, at times for ever, for threads that wait for it."""
    with a_group_of_one():
        applied = settings.apply({}, {}, place.find({}))
        strategy = DataParallel(applied, None, True)
        trainer = Trainer(WORKLOAD, applied, 1, strategy)
        wrapped = weakref.ref(trainer.forward)
        del trainer
        gc.collect()
        assert wrapped() is None


def test_an_exchange_after_the_last_gradient_is_exposed():
    told, _ = watched(late_s=LATE_S)
    assert LATE_S <= told["exposed_s"] <= told["step_s"], told


def test_sending_running_statistics_is_exposed():
    send = DistributedDataParallel._sync_buffers

    def slow(model):
        time.sleep(LATE_S)
        send(model)

    DistributedDataParallel._sync_buffers = slow
    try:
        told, _ = watched()
    finally:
        DistributedDataParallel._sync_buffers = send
    assert LATE_S <= told["exposed_s"] <= told["step_s"], told


def test_ranks_that_keep_their_gradients_have_nothing_to_hook():
    assert watched(communicates=False)[0] is None
