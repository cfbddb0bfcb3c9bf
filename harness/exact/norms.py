"""Compute what normalises: over a batch (and its running statistics), over channels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from harness.exact.layer import Array, Forward, Own
from harness.worker.network.layers import LRN, BatchNorm


def batch_norm(layer: BatchNorm, x: Array, own: Own, _counts: Sequence[int]) -> Forward:
    """Bring each channel to mean 0 and variance 1 over batch and positions; scale and shift.

    With n values a channel, z normalised and g = gamma * slope, the gradient of the input is
    (g - mean g - z * mean (g z)) / deviation, since mean and deviation follow the input.
    """
    axes = _all_but_channels(x)
    gamma, beta = (_along_channels(own[kind], x) for kind in ("gamma", "beta"))
    deviation = np.sqrt(x.var(axis=axes, keepdims=True) + layer.epsilon)
    z = (x - x.mean(axis=axes, keepdims=True)) / deviation

    def back(slope: Array) -> tuple[Array, Own]:
        g = gamma * slope
        common = g.mean(axis=axes, keepdims=True)
        along = (g * z).mean(axis=axes, keepdims=True)
        found = {"gamma": (slope * z).sum(axis=axes), "beta": slope.sum(axis=axes)}
        return (g - common - z * along) / deviation, found

    return gamma * z + beta, back


def running(layer: BatchNorm, x: Array, own: Own) -> dict[str, Array]:
    """Move the running statistics towards a batch's; its variance is Bessel-corrected."""
    axes = _all_but_channels(x)
    batch = {"mean": x.mean(axis=axes), "variance": x.var(axis=axes, ddof=1)}
    return {
        kind: (1 - layer.momentum) * own[kind] + layer.momentum * value
        for kind, value in batch.items()
    }


def lrn(layer: LRN, x: Array, _own: Own, _counts: Sequence[int]) -> Forward:
    """Divide by d^beta, d = k + alpha * the sum of squares over the channels around.

    x_j enters d of each channel i around it, so its gradient is
    slope_j d_j^-beta - 2 alpha beta x_j * sum over i of slope_i x_i d_i^(-beta - 1).
    """
    d = layer.k + layer.alpha * _over_neighbours(x * x, layer.size)
    scale = d**-layer.beta

    def back(slope: Array) -> tuple[Array, Own]:
        through = _over_neighbours(slope * x * scale / d, layer.size)
        return slope * scale - 2 * layer.alpha * layer.beta * x * through, {}

    return x * scale, back


def _over_neighbours(x: Array, size: int) -> Array:
    """Sum over ``size`` channels, as many on either side."""
    channels, reach = x.shape[1], size // 2
    total = np.zeros_like(x)
    for channel in range(channels):
        around = slice(max(0, channel - reach), min(channels, channel + reach + 1))
        total[:, channel] = x[:, around].sum(axis=1)
    return total


def _all_but_channels(x: Array) -> tuple[int, ...]:
    return (0, *range(2, x.ndim))


def _along_channels(values: Array, x: Array) -> Array:
    return values.reshape(1, -1, *[1] * (x.ndim - 2))


RUNNING: Mapping[type, Callable[[Any, Array, Own], dict[str, Array]]] = {BatchNorm: running}
"""How running statistics follow a batch, for each layer that keeps any."""
