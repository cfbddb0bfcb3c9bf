"""Describe a BERT small enough for a first look: every word of the large one, at 64 features."""

from __future__ import annotations

from harness.worker.network.workload import AdamW, DataSet, Training
from workloads.bert_base import bert_network

WORKLOAD = Training(
    name="tinybert",
    title="A tiny BERT, both heads, 32 tokens",
    unit="tokens",
    network=bert_network(
        2, features=64, heads=4, vocabulary=512, held=48, length=32, masked=(3, 8, 14, 21, 30)
    ),
    loss="token-and-pair-cross-entropy",
    optimiser=AdamW(rate=1e-4, epsilon=1e-6, weight_decay=0.01, clip=1.0),
    data=DataSet("tiny Shakespeare", 1_003_854 // 32),
    parameters=145_154,
    macs=3_596_416,
)
