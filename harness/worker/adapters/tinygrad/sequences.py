"""Turn the words of sequences into tinygrad tensors.

What an expert does here, and why:

- Attention is ``Tensor.scaled_dot_product_attention``; what it fuses decides tinygrad's scheduler.
- A table is indexed by its tokens, as ``nn.Embedding`` does: on a CPU that is a sum over all rows
  of which one is chosen, and its gradient too.
- A GELU by erf is tinygrad's own. Its erf is an approximation that is 1.5e-7 off, as the gate says.
"""

from __future__ import annotations

from typing import Any, Callable, Dict

import numpy
from tinygrad import Tensor

from harness.worker.network.sequence_layers import (
    GELU,
    Attention,
    ClassToken,
    Embedding,
    Gather,
    LayerNorm,
    Positions,
    RMSNorm,
    Rotary,
    Segments,
    Select,
    SiLU,
    TiedDense,
    ToSequence,
)


def embedding(site: Any, x: Any, one: Any) -> Any:
    """Take each token's row."""
    return one.parameters[site.path + "/weight"][x]


def positions(site: Any, x: Any, one: Any) -> Any:
    """Add each position's vector."""
    return x + one.parameters[site.path + "/weight"][: x.shape[1]]


def segments(site: Any, x: Any, one: Any) -> Any:
    """Add each segment's vector: its positions lie behind each other."""
    table = one.parameters[site.path + "/weight"]
    apart = x.reshape(x.shape[0], site.layer.count, -1, x.shape[2])
    return (apart + table.unsqueeze(1)).reshape(x.shape)


def class_token(site: Any, x: Any, one: Any) -> Any:
    """Put one vector before each sequence."""
    first = one.parameters[site.path + "/weight"].unsqueeze(0)
    return first.expand(x.shape[0], 1, x.shape[2]).cat(x, dim=1)


def to_sequence(_site: Any, x: Any, _one: Any) -> Any:
    """Lay an image's positions behind each other."""
    return x.flatten(2).transpose(1, 2)


def layer_norm(site: Any, x: Any, one: Any) -> Any:
    """Bring each position to mean 0 and variance 1."""
    y = x.layernorm(eps=site.layer.epsilon) * one.parameters[site.path + "/gamma"]
    return y + one.parameters[site.path + "/beta"] if site.layer.bias else y


def rms_norm(site: Any, x: Any, one: Any) -> Any:
    """Divide each position by the root of its mean square."""
    size = (x.square().mean(-1, keepdim=True) + site.layer.epsilon).rsqrt()
    return x * size * one.parameters[site.path + "/gamma"]


def attention(site: Any, x: Any, _one: Any) -> Any:
    """Mix positions."""
    layer: Attention = site.layer
    counts = layer.heads, layer.kv_heads, layer.kv_heads
    parts = x.split([count * layer.head for count in counts], dim=-1)
    query, key, value = (
        part.reshape(*x.shape[:2], count, layer.head).transpose(1, 2)
        for part, count in zip(parts, counts)
    )
    if layer.rotary is not None:
        query, key = (_turned(layer.rotary, part) for part in (query, key))
    mixed = query.scaled_dot_product_attention(
        key, value, is_causal=layer.causal, enable_gqa=layer.kv_heads < layer.heads
    )
    return mixed.transpose(1, 2).flatten(2)


def _turned(rotary: Rotary, x: Any) -> Any:
    """Turn the pairs of each head by their position's angle."""
    length, size = x.shape[2:]
    speeds = rotary.theta ** (-2.0 * numpy.arange(size // 2) / size)
    angles = numpy.outer(numpy.arange(length), speeds)
    cosines, sines = (Tensor(one, dtype=x.dtype) for one in (numpy.cos(angles), numpy.sin(angles)))
    if rotary.interleaved:
        pairs = x.reshape(*x.shape[:3], size // 2, 2)
        first, second = pairs[..., 0], pairs[..., 1]
    else:
        first, second = x.chunk(2, dim=-1)
    turned = first * cosines - second * sines, second * cosines + first * sines
    if rotary.interleaved:
        return turned[0].stack(turned[1], dim=-1).reshape(x.shape)
    return turned[0].cat(turned[1], dim=-1)


def gelu(site: Any, x: Any, _one: Any) -> Any:
    """Multiply x by the normal distribution at x."""
    return x.gelu("tanh" if site.layer.tanh else "none")


def gather(site: Any, x: Any, _one: Any) -> Any:
    """Take some positions: each is cut out, since an index would be a sum over all of them."""
    taken = [x[:, position : position + 1] for position in site.layer.positions]
    return taken[0].cat(*taken[1:], dim=1)


def tied_dense(site: Any, x: Any, one: Any) -> Any:
    """Multiply by an embedding's table."""
    bias = one.parameters[site.path + "/bias"] if site.layer.bias else None
    return x.linear(one.parameters[site.layer.to + "/weight"].transpose(), bias)


SEQUENCE_LAYERS: Dict[type, Callable[[Any, Any, Any], Any]] = {
    Embedding: embedding,
    Segments: segments,
    Positions: positions,
    ClassToken: class_token,
    ToSequence: to_sequence,
    LayerNorm: layer_norm,
    RMSNorm: rms_norm,
    Attention: attention,
    GELU: gelu,
    SiLU: lambda site, x, one: x.silu(),
    Select: lambda site, x, one: x[:, site.layer.position],
    Gather: gather,
    TiedDense: tied_dense,
}
