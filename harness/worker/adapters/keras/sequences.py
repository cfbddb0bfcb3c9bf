"""Write the words of sequences as Keras layers: its own, or one of ours as its guides show.

Attention is ``keras.ops.dot_product_attention``, which ``GroupQueryAttention`` computes by too;
that layer itself holds its projections, which are layers of the network here. Keras turns no
queries and keys, so that is written with ``keras.ops``.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence

import keras
import numpy
from keras import layers, ops

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
    TiedDense,
    ToSequence,
)

_CUBE = 0.044715


class Table(layers.Layer):
    """Hold a number of learned vectors."""

    def __init__(self, count: int, deviation: float, **options: Any) -> None:
        super().__init__(**options)
        self._count = count
        self._deviation = deviation

    def build(self, shape: Sequence[Any]) -> None:
        """Draw them, as long as those of a sequence."""
        normal = keras.initializers.RandomNormal(stddev=self._deviation)
        self.kernel = self.add_weight(shape=(self._count, shape[-1]), initializer=normal)


class AddPositions(Table):
    """Add a learned vector for each position."""

    def call(self, x: Any) -> Any:
        """Add to all samples."""
        return x + self.kernel[: x.shape[1]]


class AddSegments(Table):
    """Add each segment's learned vector to its positions."""

    def call(self, x: Any) -> Any:
        """Add to all samples."""
        return x + ops.repeat(self.kernel, x.shape[1] // self._count, axis=0)


class PutFirst(Table):
    """Put one learned vector before each sequence."""

    def call(self, x: Any) -> Any:
        """Make each sample one position longer."""
        each = ops.broadcast_to(self.kernel, (ops.shape(x)[0], 1, x.shape[-1]))
        return ops.concatenate([each, x], axis=1)


class Pick(layers.Layer):
    """Take one position."""

    def __init__(self, position: int, **options: Any) -> None:
        super().__init__(**options)
        self._position = position

    def call(self, x: Any) -> Any:
        """Give (batch, features)."""
        return x[:, self._position]


class Take(layers.Layer):
    """Take some positions."""

    def __init__(self, positions: Sequence[int], **options: Any) -> None:
        super().__init__(**options)
        self._positions = numpy.array(positions)

    def call(self, x: Any) -> Any:
        """Give (batch, positions taken, features)."""
        return ops.take(x, self._positions, axis=1)


class Tied(layers.Layer):
    """Multiply by the table of an Embedding layer, which both train."""

    table: Any
    """That layer, which the network knows."""

    def __init__(self, features: int, has_bias: bool, **options: Any) -> None:
        super().__init__(**options)
        self._features = features
        self._has_bias = has_bias

    def build(self, shape: Sequence[Any]) -> None:
        """Hold a bias, if there is one."""
        if self._has_bias:
            self.bias = self.add_weight(shape=(self._features,), initializer="zeros")

    def call(self, x: Any) -> Any:
        """Give a number for each row of the table."""
        y = ops.matmul(x, ops.transpose(self.table.embeddings))
        return y + self.bias if self._has_bias else y


class Mix(layers.Layer):
    """Attention over queries, keys and values that come side by side."""

    def __init__(self, rule: Attention, **options: Any) -> None:
        super().__init__(**options)
        self._rule = rule

    def call(self, x: Any) -> Any:
        """Give (batch, positions, heads x head)."""
        rule, length = self._rule, x.shape[1]
        ends = numpy.cumsum([rule.heads * rule.head, rule.kv_heads * rule.head]).tolist()
        query, key, value = (
            ops.reshape(part, (-1, length, count, rule.head))
            for part, count in zip(
                ops.split(x, ends, axis=-1), (rule.heads, rule.kv_heads, rule.kv_heads)
            )
        )
        if rule.rotary is not None:
            query, key = (_turned(rule.rotary, one) for one in (query, key))
        if rule.kv_heads < rule.heads:  # keras.ops repeats a single one on no backend
            group = rule.heads // rule.kv_heads
            key, value = (ops.repeat(one, group, axis=2) for one in (key, value))
        if keras.backend.backend() == "jax" and query.dtype == "float64":
            mixed = _in_float64(rule, query, key, value)
        else:
            mixed = ops.dot_product_attention(
                query, key, value, scale=rule.head**-0.5, is_causal=rule.causal
            )
        return ops.reshape(mixed, (-1, length, rule.heads * rule.head))


def _in_float64(rule: Attention, query: Any, key: Any, value: Any) -> Any:
    """Write attention out for the gate: JAX's own takes its softmax in float32, whatever comes."""
    scores = ops.einsum("bthd,bshd->bhts", query, key) * rule.head**-0.5
    if rule.causal:
        scores = ops.where(numpy.tri(query.shape[1], dtype=bool), scores, -numpy.inf)
    return ops.einsum("bhts,bshd->bthd", ops.softmax(scores), value)


def _turned(rotary: Rotary, x: Any) -> Any:
    """Turn the pairs of each head by their position's angle, in at least float32."""
    kind = keras.backend.result_type(x.dtype, "float32")
    wide, (length, count, size) = ops.cast(x, kind), x.shape[1:]
    speeds = rotary.theta ** (-2.0 * numpy.arange(size // 2) / size)
    angles = numpy.outer(numpy.arange(length), speeds)[:, None]
    cosines, sines = (ops.cast(one, kind) for one in (numpy.cos(angles), numpy.sin(angles)))
    if rotary.interleaved:
        pairs = ops.reshape(wide, (-1, length, count, size // 2, 2))
        first, second = pairs[..., 0], pairs[..., 1]
    else:
        first, second = ops.split(wide, 2, axis=-1)
    turned = first * cosines - second * sines, second * cosines + first * sines
    if rotary.interleaved:
        joined = ops.reshape(ops.stack(turned, axis=-1), (-1, length, count, size))
    else:
        joined = ops.concatenate(turned, axis=-1)
    return ops.cast(joined, x.dtype)


class Gelu(layers.Layer):
    """GELU: Keras' own but in float64, where TensorFlow's rounds its constants to float32.

    There half of one more than a tanh is the logistic function at twice the place.
    """

    def __init__(self, *, by_tanh: bool, **options: Any) -> None:
        super().__init__(**options)
        self._by_tanh = by_tanh

    def call(self, x: Any) -> Any:
        """Bend."""
        if keras.backend.standardize_dtype(x.dtype) != "float64":
            return keras.activations.gelu(x, approximate=self._by_tanh)
        if not self._by_tanh:
            return 0.5 * x * (1 + ops.erf(x * 0.5**0.5))
        twice = 2 * (2 / numpy.pi) ** 0.5
        return x * ops.sigmoid(x * (twice + twice * _CUBE * x * x))


def embedding(spot: Spot) -> List[Any]:
    """Take each token's row."""
    layer: Any = spot.layer
    normal = keras.initializers.RandomNormal(stddev=layer.deviation)
    return [layers.Embedding(layer.vocabulary, layer.features, embeddings_initializer=normal)]


def segments(spot: Spot) -> List[Any]:
    """Add each segment's vector."""
    layer: Any = spot.layer
    return [AddSegments(layer.count, layer.deviation)]


def positions(spot: Spot) -> List[Any]:
    """Add each position's vector."""
    layer: Any = spot.layer
    return [AddPositions(layer.length, layer.deviation)]


def class_token(spot: Spot) -> List[Any]:
    """Put one vector before each sequence."""
    layer: Any = spot.layer
    return [PutFirst(1, layer.deviation)]


def to_sequence(spot: Spot) -> List[Any]:
    """Lay an image's positions behind each other; channels are last already."""
    return [layers.Reshape(spot.output)]


def layer_norm(spot: Spot) -> List[Any]:
    """Bring each position to mean 0 and variance 1."""
    layer: Any = spot.layer
    return [layers.LayerNormalization(epsilon=layer.epsilon, center=layer.bias)]


def rms_norm(spot: Spot) -> List[Any]:
    """Divide each position by the root of its mean square."""
    layer: Any = spot.layer
    return [layers.RMSNormalization(epsilon=layer.epsilon)]


def attention(spot: Spot) -> List[Any]:
    """Mix positions."""
    assert isinstance(spot.layer, Attention)
    return [Mix(spot.layer)]


def gelu(spot: Spot) -> List[Any]:
    """Multiply x by the normal distribution at x."""
    layer: Any = spot.layer
    return [Gelu(by_tanh=layer.tanh)]


def select(spot: Spot) -> List[Any]:
    """Take one position."""
    layer: Any = spot.layer
    return [Pick(layer.position)]


def gather(spot: Spot) -> List[Any]:
    """Take some positions."""
    layer: Any = spot.layer
    return [Take(layer.positions)]


def tied_dense(spot: Spot) -> List[Any]:
    """Give what multiplies by an embedding's table, which it is still to be given."""
    assert isinstance(spot.layer, TiedDense)
    return [Tied(spot.layer.features, spot.layer.bias)]


SEQUENCE_LAYERS: Dict[type, Callable[[Spot], List[Any]]] = {
    Embedding: embedding,
    Segments: segments,
    Positions: positions,
    ClassToken: class_token,
    ToSequence: to_sequence,
    LayerNorm: layer_norm,
    RMSNorm: rms_norm,
    Attention: attention,
    GELU: gelu,
    SiLU: lambda _: [layers.Activation("silu")],
    Select: select,
    Gather: gather,
    TiedDense: tied_dense,
}
