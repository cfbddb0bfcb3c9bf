"""Describe a network small enough for a first look, with one of each common trap.

The trap worth its place: the last convolution's stride makes TensorFlow's SAME pad 0 before and
1 after, which is the form stated here.
"""

from __future__ import annotations

from harness.worker.network.layers import (
    BatchNorm,
    Conv,
    Dense,
    GlobalAverage,
    MaxPool,
    Network,
    ReLU,
    Residual,
)
from harness.worker.network.workload import SGD, DataSet, Training

WORKLOAD = Training(
    name="tinycnn",
    title="A tiny residual network, 32 x 32",
    unit="images",
    network=Network(
        input=(3, 32, 32),
        layers=(
            Conv("conv1", 16, 3, pad=(1, 1)),
            BatchNorm("bn1"),
            ReLU("relu1"),
            MaxPool("pool1", 2, 2),
            Residual(
                "block",
                (
                    Conv("conv1", 16, 3, pad=(1, 1)),
                    BatchNorm("bn1"),
                    ReLU("relu1"),
                    Conv("conv2", 16, 3, pad=(1, 1)),
                    BatchNorm("bn2"),
                ),
            ),
            ReLU("block_relu"),
            Conv("conv2", 32, 3, stride=2, pad=(0, 1)),
            ReLU("relu2"),
            GlobalAverage("pool2"),
            Dense("fc", 10),
        ),
    ),
    loss="cross-entropy",
    optimiser=SGD(rate=0.05, weight_decay=1e-4),
    data=DataSet("CIFAR-10", 50_000),
    parameters=10_154,
    macs=1_917_248,
    content="tiny-pictures",
)
