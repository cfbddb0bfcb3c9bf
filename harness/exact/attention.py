"""Compute attention: each query's softmax over the keys it may see, times the values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.exact.layer import Array, Forward, Own
from harness.worker.network.sequence_layers import Attention, Rotary


def attention(layer: Attention, x: Array, _own: Own, _counts: Sequence[int]) -> Forward:
    """Mix positions, head by head; of several query heads that share a key, gradients add up."""
    queries, keys, values = _split(layer, x)
    if layer.rotary is not None:
        queries, keys = turned(layer.rotary, queries, 1), turned(layer.rotary, keys, 1)
    group = layer.heads // layer.kv_heads
    keys, values = np.repeat(keys, group, axis=1), np.repeat(values, group, axis=1)
    scores = queries @ keys.swapaxes(2, 3) / np.sqrt(layer.head)
    if layer.causal:
        length = x.shape[1]
        scores = np.where(np.tril(np.ones((length, length), dtype=bool)), scores, -np.inf)
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)

    def back(slope: Array) -> tuple[Array, Own]:
        sent = _headed(slope, layer.heads)
        through = sent @ values.swapaxes(2, 3)
        bent = shares * (through - (through * shares).sum(axis=-1, keepdims=True))
        bent /= np.sqrt(layer.head)
        to_queries, to_keys = bent @ keys, _shared(bent.swapaxes(2, 3) @ queries, group)
        to_values = _shared(shares.swapaxes(2, 3) @ sent, group)
        if layer.rotary is not None:
            to_queries, to_keys = (turned(layer.rotary, one, -1) for one in (to_queries, to_keys))
        parts = [_flat(one) for one in (to_queries, to_keys, to_values)]
        return np.concatenate(parts, axis=-1), {}

    return _flat(shares @ values), back


def turned(rotary: Rotary, x: Array, way: int) -> Array:
    """Turn the pairs of each head by their position's angle, forward or back."""
    length, size = x.shape[2:]
    pairs = np.arange(size // 2)
    angles = way * np.arange(length)[:, None] * rotary.theta ** (-2.0 * pairs / size)
    cosines, sines = np.cos(angles), np.sin(angles)
    first, second = (2 * pairs, 2 * pairs + 1) if rotary.interleaved else (pairs, pairs + size // 2)
    result = np.empty_like(x)
    result[..., first] = x[..., first] * cosines - x[..., second] * sines
    result[..., second] = x[..., second] * cosines + x[..., first] * sines
    return result


def _split(layer: Attention, x: Array) -> tuple[Array, Array, Array]:
    """Give queries, keys and values: (samples, heads, positions, head)."""
    ends = np.cumsum([layer.heads * layer.head, layer.kv_heads * layer.head])
    queries, keys, values = np.split(x, ends, axis=-1)
    return (
        _headed(queries, layer.heads),
        _headed(keys, layer.kv_heads),
        _headed(values, layer.kv_heads),
    )


def _headed(x: Array, heads: int) -> Array:
    return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


def _flat(x: Array) -> Array:
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


def _shared(x: Array, group: int) -> Array:
    """Add up what the query heads of a group send to the key or value that they share."""
    samples, heads, length, size = x.shape
    total: Array = x.reshape(samples, heads // group, group, length, size).sum(axis=2)
    return total
