"""Describe a network of the words of sequences, small enough to be examined often.

The tests put it into a payload as a workload of its own. Two heads each share a key, halves of a
head turn (the workloads that ship turn pairs), and gradients are longer than what they are clipped
to; epsilons are large, so that they tell.
"""

from __future__ import annotations

from harness.worker.network.layers import Dense, Heads, Network, Product, Residual, Tanh
from harness.worker.network.sequence_layers import (
    GELU,
    Attention,
    Embedding,
    Gather,
    LayerNorm,
    Positions,
    RMSNorm,
    Rotary,
    Segments,
    Select,
    SiLU,
    TiedDense,
)
from harness.worker.network.workload import AdamW, DataSet, Training

TURNING = Rotary(100.0, interleaved=False)

WORKLOAD = Training(
    name="gated",
    title="Words of sequences",
    unit="sequences",
    network=Network(
        input=(12,),
        layers=(
            Embedding("tokens", 24, 16),
            Segments("thirds", 3),
            Positions("positions", 14),
            Residual(
                "mix",
                (
                    RMSNorm("rms", 1e-2),
                    Dense("qkv", 32, bias=False),
                    Attention("attention", 4, 2, 4, causal=True, rotary=TURNING),
                    Dense("projection", 16),
                ),
            ),
            Residual("normed", (LayerNorm("norm"),)),
            Dense("up", 24),
            GELU("gelu", tanh=True),
            Product(
                "glu",
                (Dense("body", 16), GELU("erf", tanh=False)),
                (Dense("gate", 16), SiLU("silu")),
            ),
            LayerNorm("last", 1e-2),
            Heads(
                "heads",
                (Gather("some", (7, 2, 9, 3, 11, 0)), TiedDense("token", "tokens", 24, bias=True)),
                (Select("first", 0), Dense("pooler", 8), Tanh("tanh"), Dense("pair", 2)),
            ),
        ),
    ),
    loss="token-and-pair-cross-entropy",
    optimiser=AdamW(rate=1e-2, epsilon=1e-3, weight_decay=0.1, clip=0.05),
    data=DataSet("none", 1),
    parameters=0,
    macs=0,
)
