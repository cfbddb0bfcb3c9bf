"""Describe a network of little else than layers with a constant that rounding may hide.

The tests put it into a payload as a workload of its own.
"""

from __future__ import annotations

from harness.worker.network.layers import (
    LRN,
    BatchNorm,
    Conv,
    Dense,
    GlobalAverage,
    LeakyReLU,
    MaxPool,
    Network,
)
from harness.worker.network.workload import SGD, DataSet, Training

WORKLOAD = Training(
    name="gated",
    title="Constants beside rounding",
    unit="images",
    network=Network(
        input=(4, 8, 8),
        layers=(
            Conv("conv", 8, 3, stride=2, pad=(1, 0)),
            BatchNorm("norm"),
            LeakyReLU("leaky", 0.01),
            LRN("local", size=5, alpha=1e-4, beta=0.75, k=1.0),
            MaxPool("pool", 3, 2, (1, 1)),
            GlobalAverage("average"),
            Dense("fc", 5),
        ),
    ),
    loss="cross-entropy",
    optimiser=SGD(rate=0.05),
    data=DataSet("none", 1),
    parameters=0,
    macs=0,
)
