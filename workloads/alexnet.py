"""Describe AlexNet in one tower: Krizhevsky, "One weird trick" (2014), as torchvision.

Torchvision's adaptive average pool is the identity at 224, so it is not a layer here.
"""

from __future__ import annotations

from harness.worker.network.layers import Conv, Dense, Dropout, Flatten, MaxPool, Network, ReLU
from harness.worker.network.workload import SGD, DataSet, Training

WORKLOAD = Training(
    name="alexnet",
    title="AlexNet, one tower, 224 x 224",
    unit="images",
    network=Network(
        input=(3, 224, 224),
        layers=(
            Conv("conv1", 64, 11, stride=4, pad=(2, 2)),
            ReLU("relu1"),
            MaxPool("pool1", 3, 2),
            Conv("conv2", 192, 5, pad=(2, 2)),
            ReLU("relu2"),
            MaxPool("pool2", 3, 2),
            Conv("conv3", 384, 3, pad=(1, 1)),
            ReLU("relu3"),
            Conv("conv4", 256, 3, pad=(1, 1)),
            ReLU("relu4"),
            Conv("conv5", 256, 3, pad=(1, 1)),
            ReLU("relu5"),
            MaxPool("pool5", 3, 2),
            Flatten("flatten"),
            Dropout("drop6", 0.5),
            Dense("fc6", 4096),
            ReLU("relu6"),
            Dropout("drop7", 0.5),
            Dense("fc7", 4096),
            ReLU("relu7"),
            Dense("fc8", 1000),
        ),
    ),
    loss="cross-entropy",
    optimiser=SGD(rate=0.01, weight_decay=5e-4),
    data=DataSet("ImageNet-1k", 1_281_167),
    parameters=61_100_840,
    macs=714_188_480,
    content="pictures",
)
