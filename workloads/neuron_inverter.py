"""Describe Neuron-Inverter: 15 biophysical parameters from a neuron's voltage traces."""

from __future__ import annotations

from typing import List

from harness.worker.network.layers import (
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Flatten,
    Layer,
    MaxPool,
    Network,
    ReLU,
)
from harness.worker.network.workload import Adam, DataSet, Training


def _network() -> Network:
    layers: List[Layer] = []
    for index, channels in enumerate((30, 90, 180), start=1):
        layers += [
            Conv("conv{}".format(index), channels, 4),
            MaxPool("pool{}".format(index), 4, 4),
            ReLU("relu{}".format(index)),
        ]
    layers += [Flatten("flatten"), BatchNorm("bn3")]
    for index, features in enumerate((512, 512, 512, 256, 128), start=4):
        layers += [
            Dense("fc{}".format(index), features),
            ReLU("relu{}".format(index)),
            Dropout("drop{}".format(index), 0.05),
        ]
    layers.append(Dense("fc9", 15))
    return Network(input=(4, 1600), layers=tuple(layers))


WORKLOAD = Training(
    name="neuron-inverter",
    title="Neuron-Inverter, 4 x 1600 samples of voltage",
    unit="traces",
    network=_network(),
    loss="mean-squared-error",
    optimiser=Adam(rate=1e-3),
    data=DataSet("Neuron-Inverter", 1_000_000),
    parameters=2_988_843,
    macs=14_166_048,
    content="traces",
)
