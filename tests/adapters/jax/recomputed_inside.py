"""Blocks that JAX is told to compute twice change nothing; on a CPU XLA computes them once."""

import os

import numpy

from harness.worker import place
from harness.worker.adapters.jax import settings
from harness.worker.adapters.jax.adapter import JaxActivity
from harness.worker.adapters.jax.strategies import Strategy
from tests.adapters.residuals import WORKLOAD as RESIDUALS
from tests.scales import fed
from workloads import tinybert, tinycnn, tinygpt, tinyllama

# What is compared is what XLA is asked for; how well it compiles that is no matter here.
os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
BATCH = 4
ALONE = place.find({})
NETWORKS = (
    *(tinygpt.WORKLOAD, tinyllama.WORKLOAD, tinybert.WORKLOAD),
    *(tinycnn.WORKLOAD, RESIDUALS),
)


def stepping(workload, precision="float64", **factors):
    chosen = settings.apply({"precision": precision, **factors}, ALONE)
    return JaxActivity(workload, fed(workload, {"batch": BATCH}, ALONE), chosen, 1, Strategy())


def trained(workload, **factors):
    """Give all that two steps left of weights and running statistics."""
    activity = stepping(workload, **factors)
    for _ in range(2):
        activity.step()
    activity.sync()
    state = activity.trained
    return {
        name: numpy.asarray(one) for name, one in {**state.parameters, **state.statistics}.items()
    }


def distance(workload, **factors):
    """Give how far off a step is that computes blocks twice, of what it leaves."""
    once, twice = trained(workload, **factors), trained(workload, recompute=True, **factors)
    assert once.keys() == twice.keys()
    assert {one.dtype for one in once.values()} == {numpy.dtype(numpy.float64)}
    return max(float(numpy.abs(once[name] - twice[name]).max()) for name in once)


def test_blocks_that_are_computed_twice_train_alike():
    for workload in NETWORKS:
        assert distance(workload) < 1e-12, workload.name


def test_micro_batches_with_blocks_that_are_computed_twice_train_alike():
    assert distance(tinygpt.WORKLOAD, accumulate=2) < 1e-12
