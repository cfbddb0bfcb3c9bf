"""Describe the CosmoFlow of Lee et al. (HiPC 2021): batch norm and average pools."""

from __future__ import annotations

from typing import List

from harness.worker.network.layers import (
    AveragePool,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Flatten,
    Layer,
    Network,
    ReLU,
)
from harness.worker.network.workload import Adam, DataSet, Training

# Channels, stride and whether an average pool follows.
CONVOLUTIONS = (
    (16, 1, True),
    (32, 1, True),
    (64, 1, True),
    (128, 2, True),
    (256, 1, True),
    (256, 1, False),
    (256, 1, False),
)


def _network() -> Network:
    layers: List[Layer] = [BatchNorm("bn0")]
    for index, (channels, stride, pooled) in enumerate(CONVOLUTIONS, start=1):
        layers += [
            Conv("conv{}".format(index), channels, 3, stride=stride, pad=(1, 1)),
            BatchNorm("bn{}".format(index)),
            ReLU("relu{}".format(index)),
        ]
        if pooled:
            layers.append(AveragePool("pool{}".format(index), 2, 2))
    layers += [
        Flatten("flatten"),
        Dropout("drop8", 0.05),
        Dense("fc8", 2048),
        Dropout("drop9", 0.05),
        ReLU("relu8"),
        Dense("fc9", 256),
        Dropout("drop10", 0.05),
        ReLU("relu9"),
        Dense("fc10", 4),
    ]
    return Network(input=(12, 128, 128, 128), layers=tuple(layers))


WORKLOAD = Training(
    name="cosmoflow-lee",
    title="CosmoFlow of Lee et al., 12 x 128^3",
    unit="volumes",
    network=_network(),
    loss="mean-squared-error",
    optimiser=Adam(rate=2e-3),
    data=DataSet("CosmoFlow, 64 files of 128", 8_192),
    parameters=9_444_140,
    macs=16_510_354_432,
    content="deep-volumes",
)
