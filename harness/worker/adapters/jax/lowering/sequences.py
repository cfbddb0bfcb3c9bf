"""Turn the words of sequences into ``jax`` operations.

- Attention is written out, in the operations that XLA makes of ``jax.nn.dot_product_attention``,
  whose softmax is float32 in float64 too: the gate found it 1e-7 off. Heads that share keys are an
  axis of their own, so that nothing is repeated. Where fused attention is asked for on a GPU it is
  cuDNN's, of what that takes: bfloat16 or float16, and heads of a multiple of 8 up to 128.
- Softmax, norms and the angles that queries and keys turn by are taken in at least float32.
"""

from __future__ import annotations

from typing import Any, Callable, Dict

import jax
import numpy
from jax import lax
from jax import numpy as jnp

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


def embedding(_net: Any, site: Any, x: Any, one: Any) -> Any:
    """Take each token's row; what comes back for one is added up in at least float32."""
    table = _wide(one.parameters[site.path + "/weight"])
    return jnp.take(table, x, axis=0).astype(one.compute)


def positions(_net: Any, site: Any, x: Any, one: Any) -> Any:
    """Add each position's vector."""
    return x + one.parameters[site.path + "/weight"][: x.shape[1]].astype(x.dtype)


def segments(_net: Any, site: Any, x: Any, one: Any) -> Any:
    """Add each segment's vector."""
    each = x.shape[1] // site.layer.count
    table = one.parameters[site.path + "/weight"].astype(x.dtype)
    return x + jnp.repeat(table, each, axis=0, total_repeat_length=x.shape[1])


def class_token(_net: Any, site: Any, x: Any, one: Any) -> Any:
    """Put one vector before each sequence."""
    first = one.parameters[site.path + "/weight"].astype(x.dtype)
    return jnp.concatenate([jnp.broadcast_to(first, (x.shape[0], *first.shape)), x], axis=1)


def to_sequence(net: Any, _site: Any, x: Any, _one: Any) -> Any:
    """Lay an image's positions behind each other."""
    channels_last = x if net.channels_last else jnp.moveaxis(x, 1, -1)
    return channels_last.reshape(x.shape[0], -1, channels_last.shape[-1])


def layer_norm(_net: Any, site: Any, x: Any, one: Any) -> Any:
    """Bring each position to mean 0 and variance 1."""
    wide = _wide(x)
    centred = wide - jnp.mean(wide, -1, keepdims=True)
    variance = jnp.mean(lax.square(centred), -1, keepdims=True)
    y = centred * lax.rsqrt(variance + site.layer.epsilon) * one.parameters[site.path + "/gamma"]
    return (y + one.parameters[site.path + "/beta"] if site.layer.bias else y).astype(x.dtype)


def rms_norm(_net: Any, site: Any, x: Any, one: Any) -> Any:
    """Divide each position by the root of its mean square."""
    wide = _wide(x)
    square = jnp.mean(lax.square(wide), -1, keepdims=True)
    scale = lax.rsqrt(square + site.layer.epsilon) * one.parameters[site.path + "/gamma"]
    return (wide * scale).astype(x.dtype)


def attention(net: Any, site: Any, x: Any, _one: Any) -> Any:
    """Mix positions."""
    layer: Attention = site.layer
    ends = numpy.cumsum([layer.heads * layer.head, layer.kv_heads * layer.head])
    parts = jnp.split(x, ends, axis=-1)
    query, key, value = (part.reshape(*x.shape[:2], -1, layer.head) for part in parts)
    if layer.rotary is not None:
        query, key = (_turned(layer.rotary, part) for part in (query, key))
    if layer.form == "fused" and not net.is_cpu and _is_cudnns(x.dtype, layer.head):
        mixed = jax.nn.dot_product_attention(
            query, key, value, is_causal=layer.causal, implementation="cudnn"
        )
        return mixed.reshape(*x.shape[:2], -1)
    group = layer.heads // layer.kv_heads
    query = query.reshape(*x.shape[:2], layer.kv_heads, group, layer.head)
    wide = jnp.promote_types(x.dtype, jnp.float32)
    scores = jnp.einsum("btkgh,bskh->bkgts", query, key, preferred_element_type=wide)
    scores = scores / layer.head**0.5
    if layer.causal:
        is_seen = numpy.tri(x.shape[1], dtype=bool)
        scores = jnp.where(is_seen, scores, -jnp.inf)
    shares = jax.nn.softmax(scores, axis=-1).astype(x.dtype)
    mixed = jnp.einsum("bkgts,bskh->btkgh", shares, value)
    return mixed.reshape(*x.shape[:2], -1)


def _is_cudnns(dtype: Any, head: int) -> bool:
    return dtype in (jnp.bfloat16, jnp.float16) and head % 8 == 0 and head <= 128


def _turned(rotary: Rotary, x: Any) -> Any:
    """Turn the pairs of each head by their position's angle."""
    wide = _wide(x)
    length, size = x.shape[1], x.shape[3]
    speeds = rotary.theta ** (-2.0 * numpy.arange(size // 2) / size)
    angles = numpy.outer(numpy.arange(length), speeds)[:, None]
    cosines, sines = (
        jnp.asarray(one, wide.dtype) for one in (numpy.cos(angles), numpy.sin(angles))
    )
    if rotary.interleaved:
        first, second = wide[..., ::2], wide[..., 1::2]
    else:
        first, second = jnp.split(wide, 2, axis=-1)
    turned = first * cosines - second * sines, second * cosines + first * sines
    if rotary.interleaved:
        return jnp.stack(turned, axis=-1).reshape(x.shape).astype(x.dtype)
    return jnp.concatenate(turned, axis=-1).astype(x.dtype)


def gelu(_net: Any, site: Any, x: Any, _one: Any) -> Any:
    """Multiply x by the normal distribution at x."""
    return jax.nn.gelu(x, approximate=site.layer.tanh)


def gather(_net: Any, site: Any, x: Any, _one: Any) -> Any:
    """Take some positions."""
    return jnp.take(x, numpy.array(site.layer.positions), axis=1)


def tied_dense(_net: Any, site: Any, x: Any, one: Any) -> Any:
    """Multiply by an embedding's table."""
    y = x @ one.parameters[site.layer.to + "/weight"].astype(x.dtype).T
    if not site.layer.bias:
        return y
    return add(y, one.parameters[site.path + "/bias"])


def add(y: Any, bias: Any) -> Any:
    """Add a bias, whose gradient is summed in at least float32."""
    return (_wide(y) + _wide(bias)).astype(y.dtype)


def _wide(x: Any) -> Any:
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


SEQUENCE_LAYERS: Dict[type, Callable[[Any, Any, Any, Any], Any]] = {
    Embedding: embedding,
    Segments: segments,
    Positions: positions,
    ClassToken: class_token,
    ToSequence: to_sequence,
    LayerNorm: layer_norm,
    RMSNorm: rms_norm,
    Attention: attention,
    GELU: gelu,
    SiLU: lambda net, site, x, one: jax.nn.silu(x),
    Select: lambda net, site, x, one: x[:, site.layer.position],
    Gather: gather,
    TiedDense: tied_dense,
}
