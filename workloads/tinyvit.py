"""Describe a vision transformer small enough for a first look: 16 patches of 8 x 8."""

from __future__ import annotations

from harness.worker.network.workload import AdamW, DataSet, Training
from workloads.vit_b16 import vit_network

WORKLOAD = Training(
    name="tinyvit",
    title="A tiny vision transformer, 32 x 32",
    unit="images",
    network=vit_network(2, image=32, patch=8, features=64, heads=4, classes=10),
    loss="cross-entropy",
    optimiser=AdamW(rate=1e-3, weight_decay=0.3, clip=1.0),
    data=DataSet("CIFAR-10", 50_000),
    parameters=114_250,
    macs=1_942_400,
    content="tiny-pictures",
)
