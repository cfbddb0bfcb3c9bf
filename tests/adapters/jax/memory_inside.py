"""What XLA needs for a step beside its state falls where it is computed in parts, or again."""

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


def test_blocks_that_are_computed_twice_need_less_and_update_alike():
    whole, once = needed_bytes()
    less, twice = needed_bytes(recompute=True)
    assert less < 0.9 * whole, (less, whole)
    for one, other in zip(once, twice, strict=True):
        numpy.testing.assert_allclose(one, other, rtol=0, atol=2e-5)
