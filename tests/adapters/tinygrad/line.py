"""A small network over one dimension, for the gate."""

from dataclasses import replace

from harness.worker.network.workload import SGD
from tests.adapters.tinygrad import every_layer

WORKLOAD = replace(
    every_layer.WORKLOAD,
    network=every_layer.LINE,
    loss="cross-entropy",
    optimiser=SGD(rate=0.1, weight_decay=0.5, rate_batch=8),
)
