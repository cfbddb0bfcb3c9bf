"""Describe saving the state of AlexNet as in the mini-app, with Adam's moments."""

from __future__ import annotations

from harness.worker.network.workload import Checkpointing
from workloads.alexnet_chien import WORKLOAD as TRAINING

WORKLOAD = Checkpointing(
    name="checkpoint-alexnet",
    title="Checkpoint: AlexNet as in the mini-app, with Adam's moments",
    training=TRAINING,
)
