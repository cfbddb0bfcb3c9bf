"""Describe GPT-2's smallest network, 124 million parameters, and lay out its blocks for others.

Radford et al., "Language models are unsupervised multitask learners" (2019), as OpenAI's code and
llm.c compute it: GELU by its tanh (nanoGPT takes the one by erf), a vocabulary of 50,257 (nanoGPT
pads it to 50,304), no dropout. The optimiser and its rate are nanoGPT's, without a schedule.
"""

from __future__ import annotations

from typing import List, Tuple

from harness.worker.network.layers import Dense, Layer, Network, Residual
from harness.worker.network.sequence_layers import (
    GELU,
    Attention,
    Embedding,
    LayerNorm,
    Positions,
    TiedDense,
)
from harness.worker.network.workload import AdamW, DataSet, Training

DEVIATION = 0.02


def blocks(
    count: int, *, features: int, heads: int, inner: int, norm: float, causal: bool, tanh: bool
) -> Tuple[Layer, ...]:
    """Lay out blocks that normalise before attention and before two dense layers, with biases.

    What a block adds to its input starts smaller, the more of them there are.
    """
    adding = DEVIATION / (2 * count) ** 0.5
    found: List[Layer] = []
    for number in range(1, count + 1):
        name = "block{}_".format(number)
        attention = (
            LayerNorm("norm", norm),
            Dense("qkv", 3 * features, deviation=DEVIATION),
            Attention("attention", heads, heads, features // heads, causal),
            Dense("projection", features, deviation=adding),
        )
        dense = (
            LayerNorm("norm", norm),
            Dense("up", inner, deviation=DEVIATION),
            GELU("gelu", tanh),
            Dense("down", features, deviation=adding),
        )
        found += [Residual(name + "attention", attention), Residual(name + "dense", dense)]
    return tuple(found)


def gpt2_network(
    count: int, features: int, heads: int, vocabulary: int, length: int, tanh: bool = True
) -> Network:
    """Lay out GPT-2 of any size."""
    return Network(
        input=(length,),
        layers=(
            Embedding("tokens", vocabulary, features, DEVIATION),
            Positions("positions", length, DEVIATION),
            *blocks(
                count,
                features=features,
                heads=heads,
                inner=4 * features,
                norm=1e-5,
                causal=True,
                tanh=tanh,
            ),
            LayerNorm("norm", 1e-5),
            TiedDense("head", "tokens", vocabulary),
        ),
    )


WORKLOAD = Training(
    name="gpt2-124m",
    title="GPT-2 124M (GELU by tanh), 1,024 tokens",
    unit="tokens",
    network=gpt2_network(12, 768, 12, 50_257, 1024),
    loss="token-cross-entropy",
    optimiser=AdamW(rate=6e-4, beta1=0.9, beta2=0.95, weight_decay=0.1, clip=1.0),
    data=DataSet("OpenWebText", 9_035_582_198 // 1024),
    parameters=124_439_808,
    macs=145_824_153_600,
    content="tokens",
    shallow=gpt2_network(2, 768, 12, 4096, 64),
)
