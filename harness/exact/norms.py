"""Compute what normalises: over a batch (and its running statistics), over channels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from harness.exact.layer import Array, Forward, Own
from harness.worker.network.layers import LRN, BatchNorm


def batch_norm(
    layer: BatchNorm, x: Array, own: Own, _counts: Sequence[int], times: Array | None = None
) -> Forward:
    """Bring each channel to mean 0 and variance 1 over batch and positions; scale and shift.

    With n values a channel, z normalised and g = gamma * slope, the gradient of the input is
    (g - mean g - z * mean (g z)) / deviation, since mean and deviation follow the input. Where a
    sample stands ``times`` times in the batch, slopes are those of all its copies together: the
    means are sums over n, and each copy takes its own away.
    """
    axes = _all_but_channels(x)
    gamma, beta = (_along_channels(own[kind], x) for kind in ("gamma", "beta"))
    each = 1.0 if times is None else _along_samples(times, x)
    n = _values(x, times)
    mean, variance = (_along_channels(one, x) for one in _moments(x, times))
    deviation = np.sqrt(variance + layer.epsilon)
    z = (x - mean) / deviation

    def back(slope: Array) -> tuple[Array, Own]:
        g = gamma * slope
        common = g.sum(axis=axes, keepdims=True) / n
        along = (g * z).sum(axis=axes, keepdims=True) / n
        found = {"gamma": (slope * z).sum(axis=axes), "beta": slope.sum(axis=axes)}
        return (g - each * (common + z * along)) / deviation, found

    return gamma * z + beta, back


def running(layer: BatchNorm, x: Array, own: Own, times: Array | None = None) -> dict[str, Array]:
    """Move the running statistics towards a batch's; its variance is Bessel-corrected."""
    n = _values(x, times)
    mean, variance = _moments(x, times)
    batch = {"mean": mean, "variance": variance * (n / (n - 1))}
    return {
        kind: (1 - layer.momentum) * own[kind] + layer.momentum * value
        for kind, value in batch.items()
    }


def _values(x: Array, times: Array | None) -> float:
    """Count the values of a channel, those of a repeated sample as often as it occurs."""
    samples = len(x) if times is None else float(times.sum())
    return float(samples * (x.size // (len(x) * x.shape[1])))


def _moments(x: Array, times: Array | None) -> tuple[Array, Array]:
    """Give each channel's mean and variance over a batch."""
    axes = _all_but_channels(x)
    if times is None:
        return x.mean(axis=axes), x.var(axis=axes)
    each, n = _along_samples(times, x), _values(x, times)
    mean = (each * x).sum(axis=axes) / n
    off = x - _along_channels(mean, x)
    return mean, (each * off * off).sum(axis=axes) / n


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


def _along_samples(values: Array, x: Array) -> Array:
    return values.reshape(-1, *[1] * (x.ndim - 1))


RUNNING: Mapping[type, Callable[..., dict[str, Array]]] = {BatchNorm: running}
"""How running statistics follow a batch, for each layer that keeps any."""
