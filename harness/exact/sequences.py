"""Compute what works on sequences, one vector of features at each position."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from harness.exact.attention import attention
from harness.exact.layer import Array, Forward, Own
from harness.worker.network.sequence_layers import (
    GELU,
    Attention,
    ClassToken,
    Embedding,
    Gather,
    LayerNorm,
    Positions,
    RMSNorm,
    Segments,
    Select,
    SiLU,
    TiedDense,
    ToSequence,
)

_CUBE = 0.044715
"""Of Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016), as is the tanh around it."""


def embedding(layer: Embedding, x: Array, own: Own, _counts: Sequence[int]) -> Forward:
    """Take each token's row; its gradient is what all its places send back, added up."""
    tokens = x.astype(np.int64)

    def back(slope: Array) -> tuple[Array, Own]:
        table = np.zeros((layer.vocabulary, layer.features))
        np.add.at(table, tokens, slope)
        return np.zeros(x.shape), {"weight": table}

    return own["weight"][tokens], back


def positions(_layer: Positions, x: Array, own: Own, _counts: Sequence[int]) -> Forward:
    """Add each position's row; those behind the last position get no gradient."""

    def back(slope: Array) -> tuple[Array, Own]:
        table = np.zeros_like(own["weight"])
        table[: x.shape[1]] = slope.sum(axis=0)
        return slope, {"weight": table}

    return x + own["weight"][: x.shape[1]], back


def segments(layer: Segments, x: Array, own: Own, _counts: Sequence[int]) -> Forward:
    """Add each segment's row to its positions."""
    each = x.shape[1] // layer.count

    def back(slope: Array) -> tuple[Array, Own]:
        parts = slope.sum(axis=0).reshape(layer.count, each, -1)
        return slope, {"weight": parts.sum(axis=1)}

    return x + np.repeat(own["weight"], each, axis=0), back


def class_token(_layer: ClassToken, x: Array, own: Own, _counts: Sequence[int]) -> Forward:
    """Put one vector before all positions of each sample."""

    def back(slope: Array) -> tuple[Array, Own]:
        return slope[:, 1:], {"weight": slope[:, :1].sum(axis=0)}

    first = np.broadcast_to(own["weight"], (len(x), 1, x.shape[2]))
    return np.concatenate([first, x], axis=1), back


def to_sequence(_layer: ToSequence, x: Array, _own: Own, _counts: Sequence[int]) -> Forward:
    """Lay an image's positions behind each other, channels last."""

    def back(slope: Array) -> tuple[Array, Own]:
        return slope.swapaxes(1, 2).reshape(x.shape), {}

    return x.reshape(*x.shape[:2], -1).swapaxes(1, 2), back


def layer_norm(layer: LayerNorm, x: Array, own: Own, _counts: Sequence[int]) -> Forward:
    """Bring each position to mean 0 and variance 1; its gradient is that of a batch norm."""
    gamma = own["gamma"]
    deviation = np.sqrt(x.var(axis=-1, keepdims=True) + layer.epsilon)
    z = (x - x.mean(axis=-1, keepdims=True)) / deviation

    def back(slope: Array) -> tuple[Array, Own]:
        g = gamma * slope
        along = (g * z).mean(axis=-1, keepdims=True)
        before = (g - g.mean(axis=-1, keepdims=True) - z * along) / deviation
        found = {"gamma": (slope * z).sum(axis=(0, 1)), "beta": slope.sum(axis=(0, 1))}
        return before, found if layer.bias else {"gamma": found["gamma"]}

    y = gamma * z
    return y + own["beta"] if layer.bias else y, back


def rms_norm(layer: RMSNorm, x: Array, own: Own, _counts: Sequence[int]) -> Forward:
    """Divide each position by the root of its mean square, which follows the input too."""
    gamma = own["gamma"]
    size = np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + layer.epsilon)
    z = x / size

    def back(slope: Array) -> tuple[Array, Own]:
        g = gamma * slope
        before = (g - z * (g * z).mean(axis=-1, keepdims=True)) / size
        return before, {"gamma": (slope * z).sum(axis=(0, 1))}

    return gamma * z, back


def gelu(layer: GELU, x: Array, _own: Own, _counts: Sequence[int]) -> Forward:
    """Multiply x by the normal distribution at x, or by what approximates it."""
    if layer.tanh:
        root = np.sqrt(2 / np.pi)
        bent = np.tanh(root * (x + _CUBE * x**3))
        share = (1 + bent) / 2
        rise = (1 - bent * bent) / 2 * root * (1 + 3 * _CUBE * x * x)
    else:
        from scipy.special import erf  # an import with threads of its own, which few need

        share = (1 + erf(x / np.sqrt(2))) / 2
        rise = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    return x * share, lambda slope: (slope * (share + x * rise), {})


def silu(_layer: SiLU, x: Array, _own: Own, _counts: Sequence[int]) -> Forward:
    """Multiply x by its logistic function."""
    from scipy.special import expit

    share = expit(x)
    return x * share, lambda slope: (slope * share * (1 + x * (1 - share)), {})


def select(layer: Select, x: Array, _own: Own, _counts: Sequence[int]) -> Forward:
    """Take one position; no other gets a gradient."""

    def back(slope: Array) -> tuple[Array, Own]:
        before = np.zeros_like(x)
        before[:, layer.position] = slope
        return before, {}

    return x[:, layer.position], back


def gather(layer: Gather, x: Array, _own: Own, _counts: Sequence[int]) -> Forward:
    """Take some positions; the others get no gradient."""
    taken = list(layer.positions)

    def back(slope: Array) -> tuple[Array, Own]:
        before = np.zeros_like(x)
        before[:, taken] = slope
        return before, {}

    return x[:, taken], back


def tied_dense(layer: TiedDense, x: Array, own: Own, _counts: Sequence[int]) -> Forward:
    """Multiply each position by another layer's table; ``weight`` is that table's gradient."""
    table = own["weight"]

    def back(slope: Array) -> tuple[Array, Own]:
        found = {"weight": np.tensordot(slope, x, axes=((0, 1), (0, 1)))}
        if layer.bias:
            found["bias"] = slope.sum(axis=(0, 1))
        return slope @ table, found

    y = x @ table.T
    return y + own["bias"] if layer.bias else y, back


SEQUENCE_LAYERS: dict[type, Callable[..., Forward]] = {
    Embedding: embedding,
    Segments: segments,
    Positions: positions,
    ClassToken: class_token,
    ToSequence: to_sequence,
    LayerNorm: layer_norm,
    RMSNorm: rms_norm,
    Attention: attention,
    GELU: gelu,
    SiLU: silu,
    Select: select,
    Gather: gather,
    TiedDense: tied_dense,
}
