"""Write each layer of the vocabulary in the operations that TensorFlow runs fastest.

A function here takes its spot, the pass it belongs to and the layer's input; it gives the output.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Type

import numpy
import tensorflow.compat.v2 as tf

from harness.worker.adapters.tensorflow.lowering.layer_style import Pass, Style
from harness.worker.adapters.tensorflow.lowering.layouts import Spot
from harness.worker.adapters.tensorflow.lowering.norms import batch_norm, lrn
from harness.worker.adapters.tensorflow.lowering.padding import padding
from harness.worker.adapters.tensorflow.lowering.sequences import SEQUENCE_LAYERS
from harness.worker.network.layers import (
    LRN,
    AveragePool,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Flatten,
    GlobalAverage,
    LeakyReLU,
    MaxPool,
    ReLU,
    Scale,
    Tanh,
)
from harness.worker.network.sequence_layers import TiedDense
from harness.worker.network.words import lowering_of

NEVER_LARGEST = float("-inf")


def run(spot: Spot, now: Pass, x: Any) -> Any:
    """Run one layer that is not a Residual."""
    return lowering_of(LAYERS, type(spot.layer), "tensorflow", spot.path)(spot, now, x)


def _conv(spot: Spot, now: Pass, x: Any) -> Any:
    layer, style = spot.layer, now.style
    assert isinstance(layer, Conv)
    sizes, counts = spot.input[1:], spot.output[1:]
    form = padding(layer.kernel, layer.stride, layer.pad[0], sizes, counts)
    rank = max(len(sizes), 2)
    if form.is_explicit:
        x = tf.pad(x, style.spread(_worked(form.first, (0, 0)), (0, 0)))
    convolve = tf.nn.conv2d if rank == 2 else tf.nn.conv3d
    strides = style.spread(_worked([layer.stride] * len(sizes), 1), 1)
    weight = now.weight(spot, "weight")

    def one(part: Any, kernel: Any) -> Any:
        return convolve(part, kernel, strides, form.word, data_format=style.format(rank))

    if layer.groups == 1 or (rank == 2 and style.has_groups()):
        y = one(x, weight)
    else:
        parts = zip(tf.split(x, layer.groups, style.channels), tf.split(weight, layer.groups, -1))
        y = tf.concat([one(part, kernel) for part, kernel in parts], style.channels)
    return _biased(spot, now, y)


def _dense(spot: Spot, now: Pass, x: Any) -> Any:
    return _biased(spot, now, _by_matrix(spot, x, now.weight(spot, "weight")))


def _tied_dense(spot: Spot, now: Pass, x: Any) -> Any:
    assert isinstance(spot.layer, TiedDense)
    table = tf.cast(now.values[spot.layer.to + "/weight"], now.style.dtype)
    return _biased(spot, now, _by_matrix(spot, x, table, transpose_b=True))


def _by_matrix(spot: Spot, x: Any, matrix: Any, transpose_b: bool = False) -> Any:
    """Multiply flat samples, or all positions of all samples as one matrix."""
    if len(spot.input) == 1:
        return tf.matmul(x, matrix, transpose_b=transpose_b)
    rows = tf.reshape(x, [-1, spot.input[1]])
    return tf.reshape(tf.matmul(rows, matrix, transpose_b=transpose_b), [-1, *spot.output])


def _biased(spot: Spot, now: Pass, y: Any) -> Any:
    layer = spot.layer
    assert isinstance(layer, (Conv, Dense, TiedDense))
    if not layer.bias:
        return y
    last = now.style.channels_last or not isinstance(layer, Conv)
    bias = now.weight(spot, "bias")
    return _bias_in_bfloat16(y, bias, last) if y.dtype == tf.bfloat16 else _bias(y, bias, last)


def _bias(y: Any, bias: Any, last: bool) -> Any:
    # bias_add names 3-D layouts as NHWC and NCHW too, in every version served here.
    return tf.nn.bias_add(y, bias, data_format="NHWC" if last else "NCHW")


def _bias_in_bfloat16(y: Any, bias: Any, last: bool) -> Any:
    """Add a bias whose gradient is a plain sum.

    ``BiasAddGrad`` adds up in bfloat16 on a CPU, unless oneDNN has merged it with a convolution's:
    of 256 samples 8 % is lost, of 4096 positions 15 %. ``Sum`` adds up in float32.
    """
    rank = len(y.shape)
    axes = [axis for axis in range(rank) if axis != (rank - 1 if last else 1)]

    def add(y: Any, bias: Any) -> Any:
        return _bias(y, bias, last), lambda slope: (slope, tf.reduce_sum(slope, axes))

    return tf.custom_gradient(add)(y, bias)


def _max_pool(spot: Spot, now: Pass, x: Any) -> Any:
    layer, style = spot.layer, now.style
    assert isinstance(layer, MaxPool)
    form = padding(layer.kernel, layer.stride, layer.pad[0], spot.input[1:], spot.output[1:])
    if form.is_explicit:
        pads = style.spread(_worked(form.first, (0, 0)), (0, 0))
        x = tf.pad(x, pads, constant_values=tf.constant(NEVER_LARGEST, x.dtype))
    return _pool(spot, style, x, form.word, (tf.nn.max_pool2d, tf.nn.max_pool3d, tf.maximum))


def _average_pool(spot: Spot, now: Pass, x: Any) -> Any:
    layer = spot.layer
    assert isinstance(layer, AveragePool)
    kinds = (tf.nn.avg_pool2d, tf.nn.avg_pool3d, tf.add)
    y = _pool(spot, now.style, x, "VALID", kinds)
    is_sum = len(spot.input) == 4 and x.dtype == tf.float64
    return y / layer.kernel**3 if is_sum else y


def _pool(spot: Spot, style: Style, x: Any, word: str, kinds: Sequence[Any]) -> Any:
    layer = spot.layer
    assert isinstance(layer, (MaxPool, AveragePool))
    dimensions = len(spot.input) - 1
    flat, deep, pair = kinds
    if dimensions == 3 and x.dtype == tf.float64:
        return _pool_in_float64(spot, style, x, word, pair)
    windows = style.spread(_worked([layer.kernel] * dimensions, 1), 1)
    strides = style.spread(_worked([layer.stride] * dimensions, 1), 1)
    pool = deep if dimensions == 3 else flat
    return pool(x, windows, strides, word, data_format=style.format(max(dimensions, 2)))


def _pool_in_float64(
    spot: Spot, style: Style, x: Any, word: str, pair: Callable[[Any, Any], Any]
) -> Any:
    """Reduce the shifted inputs of a 3-D window; TensorFlow's 3-D pools have no float64."""
    layer = spot.layer
    assert isinstance(layer, (MaxPool, AveragePool))
    assert word == "VALID"
    result: Optional[Any] = None
    for offset in numpy.ndindex(*(layer.kernel,) * 3):
        places = [
            slice(start, start + (count - 1) * layer.stride + 1, layer.stride)
            for start, count in zip(offset, spot.output[1:])
        ]
        shifted = x[tuple(style.spread(places, slice(None)))]
        result = shifted if result is None else pair(result, shifted)
    return result


def _global_average(spot: Spot, now: Pass, x: Any) -> Any:
    rank = max(len(spot.input) - 1, 2)
    first = 1 if now.style.channels_last else 2
    return tf.reduce_mean(x, list(range(first, first + rank)))


def _flatten(spot: Spot, _: Pass, x: Any) -> Any:
    return tf.reshape(x, [-1, spot.output[0]])


def _dropout(spot: Spot, now: Pass, x: Any) -> Any:
    layer = spot.layer
    assert isinstance(layer, Dropout)
    return tf.nn.dropout(x, layer.rate) if now.is_dropping and layer.rate else x


def _leaky_relu(spot: Spot, _: Pass, x: Any) -> Any:
    assert isinstance(spot.layer, LeakyReLU)
    slope = spot.layer.slope
    if x.dtype == tf.float64:  # the fused operation keeps its slope in float32
        return tf.where(x > 0, x, slope * x)
    return tf.nn.leaky_relu(x, slope)


def _scale(spot: Spot, _: Pass, x: Any) -> Any:
    assert isinstance(spot.layer, Scale)
    return x * spot.layer.factor


def _worked(spatial: Sequence[Any], one: Any) -> List[Any]:
    """Give one spatial dimension its leading companion of size 1."""
    return [one, *spatial] if len(spatial) == 1 else list(spatial)


LAYERS: Dict[Type[Any], Callable[[Spot, Pass, Any], Any]] = {
    AveragePool: _average_pool,
    BatchNorm: batch_norm,
    Conv: _conv,
    Dense: _dense,
    Dropout: _dropout,
    Flatten: _flatten,
    GlobalAverage: _global_average,
    LeakyReLU: _leaky_relu,
    LRN: lrn,
    MaxPool: _max_pool,
    ReLU: lambda _spot, _pass, x: tf.nn.relu(x),
    Scale: _scale,
    Tanh: lambda _spot, _pass, x: tf.tanh(x),
    TiedDense: _tied_dense,
    **SEQUENCE_LAYERS,
}
