"""Describe saving the state of ResNet-50, with momentum."""

from __future__ import annotations

from harness.worker.network.workload import Checkpointing
from workloads.resnet50 import WORKLOAD as TRAINING

WORKLOAD = Checkpointing(
    name="checkpoint-resnet50",
    title="Checkpoint: ResNet-50, with momentum",
    training=TRAINING,
)
