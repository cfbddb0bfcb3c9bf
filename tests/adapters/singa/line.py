"""A small network over one dimension with the layers that SINGA has for it."""

from harness.worker.network.layers import (
    AveragePool,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Flatten,
    LeakyReLU,
    MaxPool,
    Network,
    Scale,
    Tanh,
)
from harness.worker.network.workload import Adam, DataSet, Training

LAYERS = (
    Conv("conv", 6, 4, pad=(1, 2)),
    MaxPool("pool", 2, 2),
    LeakyReLU("leaky", 0.3),
    AveragePool("mean", 2, 2),
    Flatten("flat"),
    BatchNorm("norm"),
    Dropout("drop", 0.25),
    Dense("fc", 3),
    Tanh("tanh"),
    Scale("scale", 1.5),
)
WORKLOAD = Training(
    name="line",
    title="A line",
    unit="traces",
    network=Network((2, 16), LAYERS),
    loss="mean-squared-error",
    optimiser=Adam(rate=1e-2),
    data=DataSet("x", 1),
    parameters=6 * 2 * 4 + 6 + 2 * 24 + 24 * 3 + 3,
    macs=6 * 2 * 4 * 16 + 24 * 3,
)
