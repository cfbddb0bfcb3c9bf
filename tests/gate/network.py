"""Describe a network small enough to be examined often, with one of each trap.

The tests put it into a payload as a workload of its own.
"""

from __future__ import annotations

from harness.worker.network.layers import (
    LRN,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    GlobalAverage,
    MaxPool,
    Network,
    ReLU,
    Residual,
)
from harness.worker.network.workload import SGD, DataSet, Training

STRIDES = (1, 2)  # in the 3 x 3, as ResNet v1.5 does

WORKLOAD = Training(
    name="gated",
    title="One of each trap",
    unit="images",
    network=Network(
        input=(3, 19, 19),
        layers=(
            Conv("conv1", 8, 5, stride=2, pad=(2, 1)),
            ReLU("relu1"),
            LRN("norm1", size=5, alpha=2e-2, beta=0.75, k=1.0),
            MaxPool("pool1", 2, 2),
            Residual(
                "block",
                (
                    Conv("conv1", 8, 1, stride=STRIDES[0], bias=False),
                    BatchNorm("bn1"),
                    ReLU("relu1"),
                    Conv("conv2", 16, 3, stride=STRIDES[1], pad=(1, 1), groups=2, bias=False),
                    BatchNorm("bn2"),
                ),
                (Conv("projection", 16, 1, stride=2, bias=False), BatchNorm("projection_bn")),
            ),
            ReLU("relu2"),
            GlobalAverage("average"),
            Dropout("drop", 0.25),
            Dense("fc", 5),
        ),
    ),
    loss="cross-entropy",
    optimiser=SGD(rate=0.05, weight_decay=1e-3),
    data=DataSet("none", 1),
    parameters=1_709,
    macs=0,
)
