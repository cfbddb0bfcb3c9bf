"""Describe a residual network with batch norms and dropouts in its blocks; Python 3.7."""

from __future__ import annotations

from harness.worker.network.layers import (
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    GlobalAverage,
    Network,
    ReLU,
    Residual,
)
from harness.worker.network.workload import SGD, DataSet, Training

BODY = (
    Conv("conv1", 8, 3, pad=(1, 1), bias=False),
    BatchNorm("norm"),
    ReLU("relu"),
    Dropout("drop", 0.3),
    Conv("conv2", 8, 3, pad=(1, 1)),
)

WORKLOAD = Training(
    name="residuals",
    title="Residuals that drop",
    unit="images",
    network=Network(
        input=(3, 8, 8),
        layers=(
            Conv("conv", 8, 3, pad=(1, 1)),
            Residual("block1", BODY),
            ReLU("relu1"),
            Residual("block2", BODY),
            ReLU("relu2"),
            GlobalAverage("average"),
            Dense("fc", 5),
        ),
    ),
    loss="cross-entropy",
    optimiser=SGD(rate=0.05, weight_decay=1e-3),
    data=DataSet("none", 1),
    parameters=0,
    macs=0,
)
