"""Write the words of sequences in TensorFlow's operations, which has none of them in one piece.

What an expert does here, and why:

- Attention is two products of matrices with a softmax between them. The query heads that share a
  key lie behind each other as rows of one matrix, so that no key is repeated.
- Queries are scaled before the product, of which there are more numbers behind it; the mask is
  added, since choosing between two tensors of different shapes is slower.
- Softmax, norms and the turning of pairs are taken in at least float32.
- A dense layer multiplies all positions of all samples as one matrix (``layers.py``): a product of
  batches by one matrix repeats it.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

import numpy
import tensorflow.compat.v2 as tf

from harness.worker.adapters.tensorflow.lowering.layer_style import Pass
from harness.worker.adapters.tensorflow.lowering.layouts import Spot
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
    ToSequence,
)

_CUBE = 0.044715


def embedding(spot: Spot, now: Pass, x: Any) -> Any:
    """Take each token's row."""
    return tf.cast(tf.gather(now.values[spot.path + "/weight"], x), now.style.dtype)


def positions(spot: Spot, now: Pass, x: Any) -> Any:
    """Add each position's vector."""
    return x + now.weight(spot, "weight")[: spot.input[0]]


def segments(spot: Spot, now: Pass, x: Any) -> Any:
    """Add each segment's vector: its positions lie behind each other."""
    layer: Any = spot.layer
    length, features = spot.input
    apart = tf.reshape(x, [-1, layer.count, length // layer.count, features])
    return tf.reshape(apart + now.weight(spot, "weight")[:, None], [-1, length, features])


def class_token(spot: Spot, now: Pass, x: Any) -> Any:
    """Put one vector before each sequence."""
    first = now.weight(spot, "weight")
    each = tf.broadcast_to(first, [tf.shape(x)[0], 1, spot.input[1]])
    return tf.concat([each, x], axis=1)


def to_sequence(spot: Spot, now: Pass, x: Any) -> Any:
    """Lay an image's positions behind each other."""
    if not now.style.channels_last:
        x = tf.transpose(x, [0, *range(2, len(x.shape)), 1])
    return tf.reshape(x, [-1, *spot.output])


def layer_norm(spot: Spot, now: Pass, x: Any) -> Any:
    """Bring each position to mean 0 and variance 1."""
    layer: Any = spot.layer
    wide = _wide(x)
    centred = wide - tf.reduce_mean(wide, -1, keepdims=True)
    variance = tf.reduce_mean(tf.square(centred), -1, keepdims=True)
    y = centred * tf.math.rsqrt(variance + layer.epsilon) * now.values[spot.path + "/gamma"]
    return tf.cast(y + now.values[spot.path + "/beta"] if layer.bias else y, x.dtype)


def rms_norm(spot: Spot, now: Pass, x: Any) -> Any:
    """Divide each position by the root of its mean square."""
    layer: Any = spot.layer
    wide = _wide(x)
    square = tf.reduce_mean(tf.square(wide), -1, keepdims=True)
    y = wide * tf.math.rsqrt(square + layer.epsilon) * now.values[spot.path + "/gamma"]
    return tf.cast(y, x.dtype)


def attention(spot: Spot, _now: Pass, x: Any) -> Any:
    """Mix positions."""
    layer = spot.layer
    assert isinstance(layer, Attention)
    length, size, kv_heads = spot.input[0], layer.head, layer.kv_heads
    group = layer.heads // kv_heads
    parts = tf.split(x, [layer.heads * size, kv_heads * size, kv_heads * size], axis=-1)
    query, key, value = (
        tf.transpose(tf.reshape(part, [-1, length, count, size]), [0, 2, 1, 3])
        for part, count in zip(parts, (layer.heads, kv_heads, kv_heads))
    )
    if layer.rotary is not None:
        query, key = (_turned(layer.rotary, one) for one in (query, key))
    query = tf.reshape(query * size**-0.5, [-1, kv_heads, group * length, size])
    scores = _wide(tf.matmul(query, key, transpose_b=True))
    if layer.causal:
        scores += _hiding(length, group, scores.dtype)
    shares = tf.cast(tf.nn.softmax(scores), x.dtype)
    mixed = tf.reshape(tf.matmul(shares, value), [-1, layer.heads, length, size])
    return tf.reshape(tf.transpose(mixed, [0, 2, 1, 3]), [-1, length, layer.heads * size])


def _hiding(length: int, group: int, dtype: Any) -> Any:
    """Give minus infinity where a key stands behind its query, else 0."""
    place = tf.range(length)
    is_seen = place[:, None] >= place[None, :]
    hidden = tf.where(is_seen, tf.zeros([], dtype), tf.constant(float("-inf"), dtype))
    return tf.tile(hidden, [group, 1])


def _turned(rotary: Rotary, x: Any) -> Any:
    """Turn the pairs of each head by their position's angle."""
    wide = _wide(x)
    length, size = x.shape[2], x.shape[3]
    cosines, sines = (tf.constant(one, wide.dtype) for one in _turns(rotary, length, size))
    if rotary.interleaved:
        first, second = tf.unstack(tf.reshape(wide, [-1, *x.shape[1:3], size // 2, 2]), axis=-1)
    else:
        first, second = tf.split(wide, 2, axis=-1)
    turned = first * cosines - second * sines, second * cosines + first * sines
    if rotary.interleaved:
        return tf.cast(tf.reshape(tf.stack(turned, axis=-1), [-1, *x.shape[1:]]), x.dtype)
    return tf.cast(tf.concat(turned, axis=-1), x.dtype)


def _turns(rotary: Rotary, length: int, size: int) -> Tuple[Any, Any]:
    """Give the cosine and the sine of each position's and pair's angle."""
    speeds = rotary.theta ** (-2.0 * numpy.arange(size // 2) / size)
    angles = numpy.outer(numpy.arange(length), speeds)
    return numpy.cos(angles), numpy.sin(angles)


def gelu(spot: Spot, _now: Pass, x: Any) -> Any:
    """Multiply x by the normal distribution at x.

    Written out: ``tf.nn.gelu`` keeps its constants in float32, and 1.15 has none. Half of one and
    tanh(u) is the logistic function at 2 u, whose gradient on a CPU loses half as many digits, in
    two thirds of the time.
    """
    layer: Any = spot.layer
    if layer.tanh:
        twice = 2 * (2 / numpy.pi) ** 0.5
        return x * tf.sigmoid(x * (twice + twice * _CUBE * x * x))
    return 0.5 * x * (1 + tf.math.erf(x * 0.5**0.5))


def silu(_spot: Spot, _now: Pass, x: Any) -> Any:
    """Multiply x by its logistic function, in one operation that keeps x alone for its gradient."""
    return tf.nn.swish(x)


def gather(spot: Spot, _now: Pass, x: Any) -> Any:
    """Take some positions."""
    layer: Any = spot.layer
    return tf.gather(x, list(layer.positions), axis=1)


def select(spot: Spot, _now: Pass, x: Any) -> Any:
    """Take one position."""
    layer: Any = spot.layer
    return x[:, layer.position]


def _wide(x: Any) -> Any:
    return tf.cast(x, tf.float32) if x.dtype in (tf.bfloat16, tf.float16) else x


SEQUENCE_LAYERS: Dict[type, Callable[[Spot, Pass, Any], Any]] = {
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
}
