"""Describe BERT-base as it is pre-trained at 128 tokens, and lay out BERT of any size.

Devlin et al., "BERT: Pre-training of deep bidirectional transformers for language understanding"
(2018), and its code at google-research/bert: sums are normalised behind each branch, GELU by erf,
and two heads, one for tokens that were masked (its matrix is the table of tokens), one for whether
the second sentence follows the first.

What differs from that code, and what it changes: no dropout (0.1 there); every sample is masked at
the same positions and its sentences are equally long, so that nothing but tokens and targets is
fed; the bias of Adam is corrected, and the rate stays as it is.
"""

from __future__ import annotations

from typing import List, Tuple

from harness.worker.network.layers import Dense, Heads, Layer, Network, Residual, Tanh
from harness.worker.network.sequence_layers import (
    GELU,
    Attention,
    Embedding,
    Gather,
    LayerNorm,
    Positions,
    Segments,
    Select,
    TiedDense,
)
from harness.worker.network.workload import AdamW, DataSet, Training

DEVIATION = 0.02
EPSILON = 1e-12

# 15 % of 128 tokens, as often as data for BERT is made; drawn once.
MASKED_POSITIONS = (
    4,
    9,
    13,
    22,
    27,
    31,
    40,
    46,
    51,
    58,
    63,
    69,
    77,
    82,
    86,
    95,
    101,
    108,
    115,
    121,
)


def bert_network(
    count: int,
    *,
    features: int,
    heads: int,
    vocabulary: int,
    held: int,
    length: int,
    masked: Tuple[int, ...],
) -> Network:
    """Lay out BERT of any size on texts of a length, of the ``held`` positions that it learns."""
    layers: List[Layer] = [
        Embedding("tokens", vocabulary, features, DEVIATION),
        Segments("sentences", 2, DEVIATION),
        Positions("positions", held, DEVIATION),
        LayerNorm("norm", EPSILON),
    ]
    for number in range(1, count + 1):
        layers += _block("block{}_".format(number), features, heads)
    of_tokens = (
        Gather("masked", masked),
        Dense("transform", features, deviation=DEVIATION),
        GELU("gelu", tanh=False),
        LayerNorm("norm", EPSILON),
        TiedDense("token", "tokens", vocabulary, bias=True),
    )
    of_pair = (
        Select("first", 0),
        Dense("pooler", features, deviation=DEVIATION),
        Tanh("tanh"),
        Dense("follows", 2, deviation=DEVIATION),
    )
    return Network(input=(length,), layers=(*layers, Heads("heads", of_tokens, of_pair)))


def _block(name: str, features: int, heads: int) -> List[Layer]:
    attention = (
        Dense("qkv", 3 * features, deviation=DEVIATION),
        Attention("attention", heads, heads, features // heads, causal=False),
        Dense("projection", features, deviation=DEVIATION),
    )
    dense = (
        Dense("up", 4 * features, deviation=DEVIATION),
        GELU("gelu", tanh=False),
        Dense("down", features, deviation=DEVIATION),
    )
    return [
        Residual(name + "attention", attention),
        LayerNorm(name + "attention_norm", EPSILON),
        Residual(name + "dense", dense),
        LayerNorm(name + "dense_norm", EPSILON),
    ]


WORKLOAD = Training(
    name="bert-base",
    title="BERT-base, both heads, 128 tokens, no dropout",
    unit="tokens",
    network=bert_network(
        12,
        features=768,
        heads=12,
        vocabulary=30_522,
        held=512,
        length=128,
        masked=MASKED_POSITIONS,
    ),
    loss="token-and-pair-cross-entropy",
    optimiser=AdamW(rate=1e-4, epsilon=1e-6, weight_decay=0.01, clip=1.0),
    data=DataSet("Wikipedia and BookCorpus", 3_300_000_000 // 128),
    parameters=110_106_428,
    macs=11_654_831_616,
    shallow=bert_network(
        2, features=768, heads=12, vocabulary=4096, held=48, length=32, masked=(3, 8, 14, 21, 30)
    ),
)
