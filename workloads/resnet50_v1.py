"""Describe ResNet-50 as He et al. published it, striding in the first 1 x 1."""

from __future__ import annotations

from harness.worker.network.workload import SGD, DataSet, Training
from workloads.resnet50 import resnet50_network

WORKLOAD = Training(
    name="resnet50-v1",
    title="ResNet-50 v1, 224 x 224",
    unit="images",
    network=resnet50_network(stride_in_first=True),
    loss="cross-entropy",
    optimiser=SGD(rate=0.1, weight_decay=1e-4, rate_batch=256),
    data=DataSet("ImageNet-1k", 1_281_167),
    parameters=25_557_032,
    macs=3_857_973_248,
    content="pictures",
)
