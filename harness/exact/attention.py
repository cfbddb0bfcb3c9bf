"""Compute attention: each query's softmax over the keys it may see, times the values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.exact.layer import Array, Forward, Own
from harness.worker.network.sequence_layers import Attention, Rotary

_HIDDEN = float(np.finfo(np.float64).min)
"""A score of what a query may not see: its share is 0 wherever the query sees anything."""


@dataclass(frozen=True)
class Mixing:
    """What the word pins beside its fields; reckoned otherwise only to name a slip."""

    scale: float
    """What multiplies scores."""
    ahead: int | None
    """How many positions beyond its own a query sees; None: all."""
    read: tuple[int, ...]
    """Which key and value head each query head reads."""


def pinned(layer: Attention) -> Mixing:
    """Say how the word is reckoned."""
    group = layer.heads // layer.kv_heads
    read = tuple(head // group for head in range(layer.heads))
    return Mixing(layer.head**-0.5, 0 if layer.causal else None, read)


def attention(
    layer: Attention, x: Array, _own: Own, _counts: Sequence[int], mixing: Mixing | None = None
) -> Forward:
    """Mix positions, head by head; of several query heads that share a key, gradients add up."""
    how = pinned(layer) if mixing is None else mixing
    queries, keys, values = met(layer, x, how)
    shares = softmax(seen(queries @ keys.swapaxes(2, 3) * how.scale, how))

    def back(slope: Array) -> tuple[Array, Own]:
        sent = headed(slope, layer.heads)
        through = sent @ values.swapaxes(2, 3)
        bent = shares * (through - (through * shares).sum(axis=-1, keepdims=True))
        bent *= how.scale
        to_queries = bent @ keys
        to_keys = _shared(bent.swapaxes(2, 3) @ queries, how, layer)
        to_values = _shared(shares.swapaxes(2, 3) @ sent, how, layer)
        if layer.rotary is not None:
            to_queries, to_keys = (turned(layer.rotary, one, -1) for one in (to_queries, to_keys))
        parts = [flat(one) for one in (to_queries, to_keys, to_values)]
        return np.concatenate(parts, axis=-1), {}

    return flat(shares @ values), back


def met(layer: Attention, x: Array, how: Mixing) -> tuple[Array, Array, Array]:
    """Give queries, turned, and the keys and values that each head reads."""
    queries, keys, values = _split(layer, x)
    if layer.rotary is not None:
        queries, keys = turned(layer.rotary, queries, 1), turned(layer.rotary, keys, 1)
    return queries, keys[:, how.read], values[:, how.read]


def seen(scores: Array, how: Mixing) -> Array:
    """Hide what a query may not see."""
    if how.ahead is None:
        return scores
    is_seen = np.tri(scores.shape[-1], k=how.ahead, dtype=bool)
    return np.where(is_seen, scores, _HIDDEN)


def softmax(scores: Array) -> Array:
    """Give the share of each key."""
    shares: Array = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    return shares


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
        headed(queries, layer.heads),
        headed(keys, layer.kv_heads),
        headed(values, layer.kv_heads),
    )


def headed(x: Array, heads: int) -> Array:
    """Give each head's numbers: (samples, heads, positions, head)."""
    return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


def flat(x: Array) -> Array:
    """Lay heads side by side again."""
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


def _shared(x: Array, how: Mixing, layer: Attention) -> Array:
    """Add up what query heads send to the key or value head that they share."""
    total = np.zeros((len(x), layer.kv_heads, *x.shape[2:]))
    for head, read in enumerate(how.read):
        total[:, read] += x[:, head]
    return total
