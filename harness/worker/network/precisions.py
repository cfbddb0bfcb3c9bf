"""The precisions: what a step multiplies in, and what weights and optimiser are held in.

In ``bf16`` and ``fp16`` a step computes narrow copies of float32 weights, and updates those. In
``bf16-pure`` nothing is wider: weights, gradients and what the optimiser keeps are bfloat16, so
that an update below half a unit in a weight's last place is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping


@dataclass(frozen=True)
class Precision:
    """One precision."""

    products: str
    """The arithmetic of products, as peaks and measured ceilings are called."""
    compute: str
    """The type of what enters them."""
    held: str
    """The type of weights, gradients and the optimiser's state."""

    @property
    def activation_bytes(self) -> int:
        """Give the size of a number that flows."""
        return _BYTES[self.compute]

    @property
    def held_bytes(self) -> int:
        """Give the size of a weight, of its gradient and of each number kept for it."""
        return _BYTES[self.held]

    @property
    def is_pure(self) -> bool:
        """Say whether weights are held in what is computed in, though that is narrow."""
        return self.held != "float32"

    @property
    def of_weights(self) -> str:
        """Name the precision that holds weights: every number of theirs is one of its."""
        return self.products if self.is_pure else "fp32"


_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}

PRECISIONS: Mapping[str, Precision] = {
    "fp32": Precision("fp32", "float32", "float32"),
    "tf32": Precision("tf32", "float32", "float32"),
    "bf16": Precision("bf16", "bfloat16", "float32"),
    "bf16-pure": Precision("bf16", "bfloat16", "bfloat16"),
    "fp16": Precision("fp16", "float16", "float32"),
}


def precision_of(name: object) -> Precision:
    """Give a precision by its name; what has none computes in float32."""
    return PRECISIONS.get(str(name), PRECISIONS["fp32"])
