"""Describe saving the state of a tiny convolutional network, with momentum."""

from __future__ import annotations

from harness.worker.network.workload import Checkpointing
from workloads.tinycnn import WORKLOAD as TRAINING

WORKLOAD = Checkpointing(
    name="checkpoint-tinycnn",
    title="Checkpoint: a tiny convolutional network, with momentum",
    training=TRAINING,
)
