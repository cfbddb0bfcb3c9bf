"""Describe CosmoFlow as MLPerf HPC trains it: four parameters from a cube of matter."""

from __future__ import annotations

from typing import List

from harness.worker.network.layers import (
    Conv,
    Dense,
    Dropout,
    Flatten,
    Layer,
    LeakyReLU,
    MaxPool,
    Network,
    Scale,
    Tanh,
)
from harness.worker.network.workload import SGD, DataSet, Training


def _network() -> Network:
    layers: List[Layer] = []
    for index, channels in enumerate((32, 64, 128, 256, 512), start=1):
        layers += [
            Conv("conv{}".format(index), channels, 3, pad=(1, 1)),
            LeakyReLU("relu{}".format(index), 0.3),
            MaxPool("pool{}".format(index), 2, 2),
        ]
    layers.append(Flatten("flatten"))
    for index, features in enumerate((128, 64), start=6):
        layers += [
            Dense("fc{}".format(index), features),
            LeakyReLU("relu{}".format(index), 0.3),
            Dropout("drop{}".format(index), 0.5),
        ]
    layers += [Dense("fc8", 4), Tanh("tanh"), Scale("scale", 1.2)]
    return Network(input=(4, 128, 128, 128), layers=tuple(layers))


WORKLOAD = Training(
    name="cosmoflow",
    title="CosmoFlow, MLPerf HPC, 4 x 128^3",
    unit="volumes",
    network=_network(),
    loss="mean-squared-error",
    optimiser=SGD(rate=1e-3),
    data=DataSet("CosmoFlow, MLPerf HPC", 524_288),
    parameters=8_907_556,
    macs=34_431_049_984,
    content="volumes",
)
