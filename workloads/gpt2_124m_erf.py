"""Describe GPT-2's smallest network with GELU by erf, as nanoGPT computes it."""

from __future__ import annotations

from dataclasses import replace

from workloads import gpt2_124m

WORKLOAD = replace(
    gpt2_124m.WORKLOAD,
    name="gpt2-124m-erf",
    title="GPT-2 124M (GELU by erf), 1,024 tokens",
    network=gpt2_124m.gpt2_network(12, 768, 12, 50_257, 1024, tanh=False),
    shallow=gpt2_124m.gpt2_network(2, 768, 12, 4096, 64, tanh=False),
)
