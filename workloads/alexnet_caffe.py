"""Describe AlexNet as Caffe's BVLC reference model states it, and its layers once.

BVLC divides LRN's alpha of 1e-4 by the size of 5, and its pools round up, which changes nothing at
55, 27 and 13.
"""

from __future__ import annotations

from typing import Tuple

from harness.worker.network.layers import LRN, Conv, Dense, Dropout, Flatten, MaxPool, Network, ReLU
from harness.worker.network.workload import SGD, DataSet, Training


def reference_network(image: int, pad: Tuple[int, int], groups: int, classes: int) -> Network:
    """Lay out the reference model; ``pad`` is the first convolution's."""
    return Network(
        input=(3, image, image),
        layers=(
            Conv("conv1", 96, 11, stride=4, pad=pad),
            ReLU("relu1"),
            LRN("norm1", size=5, alpha=2e-5, beta=0.75, k=1.0),
            MaxPool("pool1", 3, 2),
            Conv("conv2", 256, 5, pad=(2, 2), groups=groups),
            ReLU("relu2"),
            LRN("norm2", size=5, alpha=2e-5, beta=0.75, k=1.0),
            MaxPool("pool2", 3, 2),
            Conv("conv3", 384, 3, pad=(1, 1)),
            ReLU("relu3"),
            Conv("conv4", 384, 3, pad=(1, 1), groups=groups),
            ReLU("relu4"),
            Conv("conv5", 256, 3, pad=(1, 1), groups=groups),
            ReLU("relu5"),
            MaxPool("pool5", 3, 2),
            Flatten("flatten"),
            Dense("fc6", 4096),
            ReLU("relu6"),
            Dropout("drop6", 0.5),
            Dense("fc7", 4096),
            ReLU("relu7"),
            Dropout("drop7", 0.5),
            Dense("fc8", classes),
        ),
    )


WORKLOAD = Training(
    name="alexnet-caffe",
    title="AlexNet, BVLC reference with 2 groups, 227 x 227",
    unit="images",
    network=reference_network(image=227, pad=(0, 0), groups=2, classes=1000),
    loss="cross-entropy",
    optimiser=SGD(rate=0.01, weight_decay=5e-4),
    data=DataSet("ImageNet-1k", 1_281_167),
    parameters=60_965_224,
    macs=724_406_816,
    content="pictures",
)
