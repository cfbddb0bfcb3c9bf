"""Describe a GPT-2 small enough for a first look: every word of the large one, at 64 features."""

from __future__ import annotations

from harness.worker.network.workload import AdamW, DataSet, Training
from workloads.gpt2_124m import gpt2_network

WORKLOAD = Training(
    name="tinygpt",
    title="A tiny GPT-2, 64 tokens",
    unit="tokens",
    network=gpt2_network(2, 64, 4, 512, 64),
    loss="token-cross-entropy",
    optimiser=AdamW(rate=6e-4, beta1=0.9, beta2=0.95, weight_decay=0.1, clip=1.0),
    data=DataSet("tiny Shakespeare", 1_003_854 // 64),
    parameters=136_960,
    macs=9_437_184,
    content="tiny-tokens",
)
