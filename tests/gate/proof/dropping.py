"""Describe a small network that drops: before two dense layers, as AlexNet does.

The tests put it into a payload as a workload of its own.
"""

from __future__ import annotations

from harness.worker.network.layers import Conv, Dense, Dropout, Flatten, MaxPool, Network, ReLU
from harness.worker.network.workload import SGD, DataSet, Training

WORKLOAD = Training(
    name="dropping",
    title="A small AlexNet",
    unit="images",
    network=Network(
        input=(3, 24, 24),
        layers=(
            Conv("conv1", 16, 5, stride=2, pad=(2, 2)),
            ReLU("relu1"),
            MaxPool("pool1", 3, 2),
            Conv("conv2", 24, 3, pad=(1, 1)),
            ReLU("relu2"),
            Flatten("flatten"),
            Dropout("drop3", 0.5),
            Dense("fc3", 192),
            ReLU("relu3"),
            Dropout("drop4", 0.5),
            Dense("fc4", 64),
            ReLU("relu4"),
            Dense("fc5", 10),
        ),
    ),
    loss="cross-entropy",
    optimiser=SGD(rate=0.01, weight_decay=5e-4),
    data=DataSet("none", 1),
    parameters=133_090,
    macs=387_328,
)
