"""A network with every layer of the vocabulary and each of its traps, for the gate."""

from harness.worker.network.layers import (
    LRN,
    AveragePool,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Flatten,
    GlobalAverage,
    LeakyReLU,
    MaxPool,
    Network,
    ReLU,
    Residual,
    Scale,
    Tanh,
)
from harness.worker.network.workload import Adam, DataSet, Training

BODY = (Conv("c1", 4, 3, pad=(1, 1), groups=2, bias=False), BatchNorm("n", epsilon=1e-3))
WORKLOAD = Training(
    name="every-layer",
    title="Every layer",
    unit="images",
    network=Network(
        (3, 12, 12),
        (
            Conv("conv", 4, 3, stride=2, pad=(0, 1)),
            BatchNorm("norm", momentum=0.3),
            LeakyReLU("leaky", 0.3),
            LRN("lrn", 3, 0.02, 0.75, 1.0),
            MaxPool("ceil", 2, 2, pad=(1, 0), ceil=True),
            Residual("block", BODY, (Conv("side", 4, 1),)),
            ReLU("relu"),
            MaxPool("floor", 3, 2, pad=(1, 1)),
            Scale("scale", 1.2),
            Flatten("flat"),
            Dense("fc", 5),
            BatchNorm("flat_norm"),
            Tanh("tanh"),
            Dropout("drop", 0.25),
            Dense("out", 3, bias=False),
        ),
    ),
    loss="mean-squared-error",
    optimiser=Adam(rate=1e-3),
    data=DataSet("x", 1),
    parameters=0,
    macs=0,
)

LINE = Network((2, 14), (Conv("c", 3, 4), MaxPool("p", 4, 4), ReLU("r"), GlobalAverage("g")))
VOLUME = Network(
    (2, 5, 5, 5), (Conv("c", 2, 3, pad=(1, 1)), AveragePool("p", 2, 2), GlobalAverage("g"))
)
