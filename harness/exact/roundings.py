"""Compute attention as bf16 would round it, to name a softmax that is taken in so few digits.

Where a framework rounds is its own affair, so several forms stand here, each of them that of a
framework. None is held to the gate's tolerance: orders of sums may turn a rounding over. But which
way thousands of numbers were rounded is a pattern that nothing else leaves, however large it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from harness.exact.attention import flat, met, pinned, seen, softmax
from harness.exact.layer import Array
from harness.worker.network.sequence_layers import Attention

_UNEXPLAINED = 1 / 3
"""How much of a difference a form may leave. One that has no part in it leaves more than all;
torch's fused kernel, which goes through the keys in parts, leaves 0.20 of 128 positions."""


def of_roundings(layer: Any, x: Array, found: Array, right: Array) -> Iterator[str]:
    """Name what was rounded, if that explains how a layer's output differs from the right one."""
    if not isinstance(layer, Attention):
        return
    most = _UNEXPLAINED * np.linalg.norm(found - right)
    for name, forms in FORMS.items():
        if any(np.linalg.norm(found - form(layer, x)) < most for form in forms):
            yield name


def bf16(x: Array) -> Array:
    """Round to the nearest number of bf16, ties to even: the upper half of a float32."""
    bits = x.astype(np.float32).view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    upper = (bits + np.uint32(0x7FFF) + odd) & np.uint32(0xFFFF0000)
    return upper.view(np.float32).astype(np.float64)


def around(layer: Attention, x: Array) -> Array:
    """Round what enters the softmax and what leaves it, as torch and TensorFlow do."""
    scores, values = _scored(layer, x)
    return flat(bf16(softmax(seen(bf16(scores), pinned(layer)))) @ values)


def within(layer: Attention, x: Array) -> Array:
    """Round each step of the softmax too, but add up what was not rounded yet, as XLA does."""
    scores, values = _scored(layer, x)
    scores = seen(bf16(scores), pinned(layer))
    grown = np.exp(_differences(scores))
    shares = bf16(bf16(grown) / bf16(grown.sum(axis=-1, keepdims=True)))
    return flat(shares @ values)


def fused(layer: Attention, x: Array) -> Array:
    """Round what enters, what multiplies values, and the output, as torch's fused kernel does."""
    how = pinned(layer)
    queries, keys, values = (bf16(one) for one in met(layer, x, how))
    scores = seen(queries @ keys.swapaxes(2, 3) * how.scale, how)
    grown = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return flat(bf16(bf16(grown) @ values / grown.sum(axis=-1, keepdims=True)))


def by_products(layer: Attention, x: Array) -> Array:
    """Round what enters and leaves each of the two products, as Keras does."""
    how = pinned(layer)
    queries, keys, values = (bf16(one) for one in met(layer, x, how))
    scores = seen(bf16(queries @ keys.swapaxes(2, 3)) * how.scale, how)
    return flat(bf16(bf16(softmax(scores)) @ values))


def _scored(layer: Attention, x: Array) -> tuple[Array, Array]:
    how = pinned(layer)
    queries, keys, values = met(layer, x, how)
    return queries @ keys.swapaxes(2, 3) * how.scale, values


def _differences(scores: Array) -> Array:
    """Round how far scores lie below the largest; what is hidden is beyond float32."""
    below = np.maximum(scores - scores.max(axis=-1, keepdims=True), np.finfo(np.float32).min / 2)
    return bf16(below)


FORMS: dict[str, tuple[Callable[[Attention, Array], Array], ...]] = {
    "a softmax in bf16": (around, within),
    "attention and its softmax in bf16": (fused, by_products),
}
"""By what a form is called."""
