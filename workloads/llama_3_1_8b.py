"""Describe Llama 3.1 8B: too large to train on small machines, and counted on any."""

from __future__ import annotations

from harness.worker.network.workload import AdamW, DataSet, Training
from workloads.llama_3_2_1b import C4_TOKENS, llama_network

WORKLOAD = Training(
    name="llama-3-1-8b",
    title="Llama 3.1 8B (no scaling of rotary frequencies), 8,192 tokens",
    unit="tokens",
    network=llama_network(
        32,
        features=4096,
        heads=32,
        kv_heads=8,
        inner=14_336,
        vocabulary=128_256,
        length=8192,
        tied=False,
    ),
    loss="token-cross-entropy",
    optimiser=AdamW(rate=3e-4, beta1=0.9, beta2=0.95, weight_decay=0.1, clip=1.0),
    data=DataSet("C4", C4_TOKENS // 8192),
    parameters=8_030_261_248,
    macs=79_070_347_919_360,
    content="tokens",
    shallow=llama_network(
        1, features=1024, heads=8, kv_heads=2, inner=2048, vocabulary=4096, length=64, tied=False
    ),
)
