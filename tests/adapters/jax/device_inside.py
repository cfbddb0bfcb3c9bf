"""Move what XLA's instructions did on a CPU to a GPU's plane: shares must stay as they were.

No GPU is needed: the programs, their names and the steps are real ones.
"""

from harness.worker import place
from harness.worker.adapters.jax import attribution, settings
from harness.worker.adapters.jax.adapter import JaxActivity
from harness.worker.adapters.jax.strategies import Strategy
from harness.worker.attribution.hlo_names import CONTAINERS
from harness.worker.attribution.marks import OTHER
from harness.worker.attribution.traced import OF_XLA
from tests.scales import fed
from workloads.tinycnn import WORKLOAD


def test_kernels_belong_where_their_instructions_do():
    alone = place.find({})
    feed = fed(WORKLOAD, {"batch": 4}, alone)
    activity = JaxActivity(WORKLOAD, feed, settings.apply({"threads": 1}, alone), 1, Strategy())
    given = []
    divided = attribution.divided

    def watched(*positional, **named):
        given.append(positional)
        return divided(*positional, **named)

    attribution.divided = watched
    try:
        on_cpu = attribution.attribute(activity, WORKLOAD.network, threads=1, is_gpu=False)
    finally:
        attribution.divided = divided
    trace, *more = given[0]
    ran = [one for one in trace.events if OF_XLA in one.stats]
    kernels = [one for one in ran if not one.stats[OF_XLA].startswith(CONTAINERS)]
    host = [one for one in trace.events if OF_XLA not in one.stats]
    moved = trace._replace(events=host, device=kernels)
    on_device = shares(divided(moved, *more, is_gpu=True))
    expected = shares(on_cpu)
    assert set(expected) == set(on_device), set(expected) ^ set(on_device)
    for where, share in expected.items():
        assert abs(on_device[where] - share) < 0.001, (where, share, on_device[where])
    assert on_device["conv1", "backward"] > 0, on_device
    assert on_device.get(("", OTHER), 0) < 0.02, on_device


def shares(found):
    return {tuple(part.place): sum(part.shares) / len(part.shares) for part in found.parts}
