"""What XLA needs for a step beside its state falls where the batch is computed in parts."""

import numpy

from harness.worker import place
from harness.worker.adapters.jax import settings
from harness.worker.adapters.jax.adapter import JaxActivity
from harness.worker.adapters.jax.strategies import Strategy
from tests.scales import fed
from workloads.tinygpt import WORKLOAD

BATCH = 16


def needed_bytes(**factors):
    """Give the bytes that XLA sets aside for a step, and the weights after it."""
    alone = place.find({})
    feed = fed(WORKLOAD, {"batch": BATCH}, alone)
    activity = JaxActivity(WORKLOAD, feed, settings.apply(factors, alone), 1, Strategy())
    memory = activity.compiled().memory_analysis()
    activity.step()
    activity.sync()
    weights = [numpy.asarray(one) for one in activity.trained.parameters.values()]
    return memory.temp_size_in_bytes, weights


def test_micro_batches_need_less_and_update_alike():
    whole, once = needed_bytes()
    parts, added = needed_bytes(accumulate=4)
    assert parts < whole / 2, (parts, whole)
    for one, other in zip(once, added, strict=False):
        numpy.testing.assert_allclose(one, other, rtol=0, atol=2e-5)
