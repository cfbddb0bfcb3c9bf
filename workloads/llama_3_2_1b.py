"""Describe Llama 3.2 1B, and lay out Llama's blocks once for all sizes.

Dubey et al., "The Llama 3 herd of models" (2024), as torchtitan states them: queries and keys turn
in interleaved pairs by a theta of 500,000. What Llama 3.1 and later do to low frequencies, so that
texts longer than 8,192 tokens fit, is left out: at that length it changes constants alone.
"""

from __future__ import annotations

from typing import List, Tuple

from harness.worker.network.layers import Dense, Layer, Network, Product, Residual
from harness.worker.network.sequence_layers import (
    Attention,
    Embedding,
    RMSNorm,
    Rotary,
    SiLU,
    TiedDense,
)
from harness.worker.network.workload import AdamW, DataSet, Training

DEVIATION = 0.02
C4_TOKENS = 156_000_000_000
"""About so many, as its authors count them."""


def llama_network(
    count: int,
    *,
    features: int,
    heads: int,
    kv_heads: int,
    inner: int,
    vocabulary: int,
    length: int,
    tied: bool,
) -> Network:
    """Lay out a Llama of any size."""
    head = (
        TiedDense("head", "tokens", vocabulary)
        if tied
        else Dense("head", vocabulary, bias=False, deviation=DEVIATION)
    )
    layers: List[Layer] = [Embedding("tokens", vocabulary, features, DEVIATION)]
    for number in range(1, count + 1):
        layers += _block(number, count, features, heads, kv_heads, inner)
    return Network(input=(length,), layers=(*layers, RMSNorm("norm"), head))


def _block(
    number: int, count: int, features: int, heads: int, kv_heads: int, inner: int
) -> Tuple[Layer, ...]:
    size = features // heads
    adding = DEVIATION / (2 * count) ** 0.5
    rotary = Rotary(500_000.0, interleaved=True)
    attention = (
        RMSNorm("norm"),
        Dense("qkv", (heads + 2 * kv_heads) * size, bias=False, deviation=DEVIATION),
        Attention("attention", heads, kv_heads, size, causal=True, rotary=rotary),
        Dense("projection", features, bias=False, deviation=adding),
    )
    dense = (
        RMSNorm("norm"),
        Product(
            "glu",
            (Dense("up", inner, bias=False, deviation=DEVIATION),),
            (Dense("gate", inner, bias=False, deviation=DEVIATION), SiLU("silu")),
        ),
        Dense("down", features, bias=False, deviation=adding),
    )
    name = "block{}_".format(number)
    return Residual(name + "attention", attention), Residual(name + "dense", dense)


WORKLOAD = Training(
    name="llama-3-2-1b",
    title="Llama 3.2 1B (no scaling of rotary frequencies), 8,192 tokens",
    unit="tokens",
    network=llama_network(
        16,
        features=2048,
        heads=32,
        kv_heads=8,
        inner=8192,
        vocabulary=128_256,
        length=8192,
        tied=True,
    ),
    loss="token-cross-entropy",
    optimiser=AdamW(rate=3e-4, beta1=0.9, beta2=0.95, weight_decay=0.1, clip=1.0),
    data=DataSet("C4", C4_TOKENS // 8192),
    parameters=1_235_814_400,
    macs=14_521_284_427_776,
    content="tokens",
    shallow=llama_network(
        1, features=1024, heads=16, kv_heads=4, inner=2048, vocabulary=4096, length=64, tied=True
    ),
)
