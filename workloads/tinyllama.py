"""Describe a Llama small enough for a first look: every word of the large ones, at 64 features."""

from __future__ import annotations

from harness.worker.network.workload import AdamW, DataSet, Training
from workloads.llama_3_2_1b import llama_network

WORKLOAD = Training(
    name="tinyllama",
    title="A tiny Llama, 64 tokens",
    unit="tokens",
    network=llama_network(
        2, features=64, heads=4, kv_heads=2, inner=192, vocabulary=512, length=64, tied=True
    ),
    loss="token-cross-entropy",
    optimiser=AdamW(rate=6e-4, beta1=0.9, beta2=0.95, weight_decay=0.1, clip=1.0),
    data=DataSet("tiny Shakespeare", 1_003_854 // 64),
    parameters=131_392,
    macs=9_437_184,
    content="tiny-tokens",
)
