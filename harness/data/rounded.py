"""This file rounds numbers to what a precision holds, so that a layer starts from exact inputs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_MANTISSA = {"bf16": 7, "tf32": 10, "fp32": 23}


def to(precision: str, values: Array) -> Array:
    """Round to the nearest value, ties to even."""
    if precision == "fp16":
        return values.astype(np.float16).astype(np.float64)
    narrow = values.astype(np.float32)
    dropped = 23 - _MANTISSA[precision]
    if dropped == 0:
        return narrow.astype(np.float64)
    bits = narrow.view(np.uint32)
    half = np.uint32((1 << (dropped - 1)) - 1)
    odd = (bits >> np.uint32(dropped)) & np.uint32(1)
    kept = np.uint32(0xFFFFFFFF ^ ((1 << dropped) - 1))
    return ((bits + half + odd) & kept).view(np.float32).astype(np.float64)
