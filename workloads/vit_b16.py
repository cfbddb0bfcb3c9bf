"""Describe ViT-B/16 as torchvision states it, and lay out vision transformers of any size.

Dosovitskiy et al., "An image is worth 16 x 16 words" (2020); the optimiser is that of torchvision's
recipe (decay 0.3, clipped at 1), without its schedule, augmentation and averaging.
"""

from __future__ import annotations

from harness.worker.network.layers import Conv, Dense, Network
from harness.worker.network.sequence_layers import (
    ClassToken,
    LayerNorm,
    Positions,
    Select,
    ToSequence,
)
from harness.worker.network.workload import AdamW, DataSet, Training
from workloads.gpt2_124m import DEVIATION, blocks


def vit_network(
    count: int, *, image: int, patch: int, features: int, heads: int, classes: int
) -> Network:
    """Lay out a vision transformer of any size."""
    return Network(
        input=(3, image, image),
        layers=(
            Conv("patches", features, patch, stride=patch),
            ToSequence("sequence"),
            ClassToken("class_token", DEVIATION),
            Positions("positions", (image // patch) ** 2 + 1, DEVIATION),
            *blocks(
                count,
                features=features,
                heads=heads,
                inner=4 * features,
                norm=1e-6,
                causal=False,
                tanh=False,
            ),
            LayerNorm("norm", 1e-6),
            Select("class_only", 0),
            Dense("head", classes),
        ),
    )


WORKLOAD = Training(
    name="vit-b16",
    title="ViT-B/16, 224 x 224",
    unit="images",
    network=vit_network(12, image=224, patch=16, features=768, heads=12, classes=1000),
    loss="cross-entropy",
    optimiser=AdamW(rate=3e-3, weight_decay=0.3, clip=1.0),
    data=DataSet("ImageNet-1k", 1_281_167),
    parameters=86_567_656,
    macs=17_563_828_224,
    content="pictures",
    shallow=vit_network(2, image=224, patch=16, features=768, heads=12, classes=1000),
)
