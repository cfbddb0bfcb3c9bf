"""Describe a small network that normalises and drops, held to vectors, as Neuron-Inverter is.

The tests put it into a payload as a workload of its own.
"""

from __future__ import annotations

from harness.worker.network.layers import (
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Flatten,
    MaxPool,
    Network,
    ReLU,
)
from harness.worker.network.workload import Adam, DataSet, Training

WORKLOAD = Training(
    name="inverting",
    title="A small Neuron-Inverter",
    unit="traces",
    network=Network(
        input=(4, 100),
        layers=(
            Conv("conv1", 12, 4),
            MaxPool("pool1", 4, 4),
            ReLU("relu1"),
            Flatten("flatten"),
            BatchNorm("bn1"),
            Dense("fc2", 96),
            ReLU("relu2"),
            Dropout("drop2", 0.2),
            Dense("fc3", 64),
            ReLU("relu3"),
            Dropout("drop3", 0.2),
            Dense("fc4", 5),
        ),
    ),
    loss="mean-squared-error",
    optimiser=Adam(rate=1e-3),
    data=DataSet("none", 1),
    parameters=35_057,
    macs=52_736,
)
