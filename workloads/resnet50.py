"""Describe ResNet-50 v1.5, whose blocks stride in the 3 x 3 convolution (torchvision).

He et al., "Deep residual learning" (2015); the 50-layer network is built here for both versions.
"""

from __future__ import annotations

from typing import List, Tuple

from harness.worker.network.layers import (
    BatchNorm,
    Conv,
    Dense,
    GlobalAverage,
    Layer,
    MaxPool,
    Network,
    ReLU,
    Residual,
)
from harness.worker.network.workload import SGD, DataSet, Training

EXPANSION = 4


def resnet50_network(stride_in_first: bool) -> Network:
    """Lay out ResNet-50, with each stage's stride in the first 1 x 1 convolution or the 3 x 3."""
    layers: List[Layer] = [
        Conv("conv1", 64, 7, stride=2, pad=(3, 3), bias=False),
        BatchNorm("bn1"),
        ReLU("relu1"),
        MaxPool("pool1", 3, 2, pad=(1, 1)),
    ]
    for stage, (blocks, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512)), start=1):
        for block in range(blocks):
            name = "stage{}_block{}".format(stage, block + 1)
            stride = 2 if block == 0 and stage > 1 else 1
            strides = (stride, 1) if stride_in_first else (1, stride)
            shortcut = _projection(width, stride) if block == 0 else ()
            layers.append(Residual(name, _bottleneck(width, strides), shortcut))
            layers.append(ReLU(name + "_relu"))
    layers += [GlobalAverage("pool5"), Dense("fc", 1000)]
    return Network(input=(3, 224, 224), layers=tuple(layers))


def _bottleneck(width: int, strides: Tuple[int, int]) -> Tuple[Layer, ...]:
    return (
        Conv("conv1", width, 1, stride=strides[0], bias=False),
        BatchNorm("bn1"),
        ReLU("relu1"),
        Conv("conv2", width, 3, stride=strides[1], pad=(1, 1), bias=False),
        BatchNorm("bn2"),
        ReLU("relu2"),
        Conv("conv3", EXPANSION * width, 1, bias=False),
        BatchNorm("bn3"),
    )


def _projection(width: int, stride: int) -> Tuple[Layer, ...]:
    return (
        Conv("projection", EXPANSION * width, 1, stride=stride, bias=False),
        BatchNorm("projection_bn"),
    )


WORKLOAD = Training(
    name="resnet50",
    title="ResNet-50 v1.5, 224 x 224",
    unit="images",
    network=resnet50_network(stride_in_first=False),
    loss="cross-entropy",
    optimiser=SGD(rate=0.1, weight_decay=1e-4, rate_batch=256),
    data=DataSet("ImageNet-1k", 1_281_167),
    parameters=25_557_032,
    macs=4_089_184_256,
    content="pictures",
)
