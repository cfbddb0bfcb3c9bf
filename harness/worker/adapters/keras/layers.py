"""Write each layer of the vocabulary as the Keras layers that a Keras user would take.

What Keras has no layer for (a pad of minus infinity, LRN, 3-D pools in float64) is a layer of our
own, written with ``keras.ops`` as the Keras guides show.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence, Tuple, Type

import keras
import numpy
from keras import layers, ops

from harness.worker.adapters.keras.sequences import SEQUENCE_LAYERS
from harness.worker.adapters.tensorflow.lowering.layouts import Spot
from harness.worker.adapters.tensorflow.lowering.padding import Pad, padding
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
from harness.worker.network.words import lowering_of


def written(spot: Spot) -> List[Any]:
    """Give the Keras layers, one after the other, that are this layer."""
    return lowering_of(LAYERS, type(spot.layer), "keras", spot.path)(spot)


class LowestPadding(layers.Layer):
    """Pad the spatial dimensions with minus infinity, which no maximum takes."""

    def __init__(self, pads: Sequence[Pad], **options: Any) -> None:
        super().__init__(**options)
        self._pads = ((0, 0), *pads, (0, 0))

    def call(self, x: Any) -> Any:
        """Pad."""
        return ops.pad(x, self._pads, constant_values=float("-inf"))


class LocalResponseNormalization(layers.Layer):
    """Normalise across channels; the sum over neighbours is a product with a band matrix."""

    def __init__(self, rule: LRN, **options: Any) -> None:
        super().__init__(**options)
        self._rule = rule

    def build(self, shape: Sequence[Any]) -> None:
        """Lay out the band."""
        channel = numpy.arange(shape[-1])
        is_near = abs(channel[:, None] - channel[None, :]) <= self._rule.size // 2
        self._band = (is_near * self._rule.alpha).reshape((1,) * (len(shape) - 2) + is_near.shape)

    def call(self, x: Any) -> Any:
        """Normalise."""
        scale = self._rule.k + ops.conv(x * x, ops.cast(self._band, x.dtype))
        if self._rule.beta == 0.75:
            return x * ops.rsqrt(scale * ops.sqrt(scale))
        return x * ops.power(scale, -self._rule.beta)


class ShiftedPool(layers.Layer):
    """Pool 3-D windows in float64, which TensorFlow's 3-D pools lack, from shifted inputs."""

    def __init__(
        self, size: int, stride: int, pair: Callable[[Any, Any], Any], divisor: int, **options: Any
    ) -> None:
        super().__init__(**options)
        self._size = size
        self._stride = stride
        self._pair = pair
        self._divisor = divisor

    def call(self, x: Any) -> Any:
        """Reduce what stands at each offset of the windows."""
        ends = [length - self._size + 1 for length in x.shape[1:4]]
        result: Any = None
        for offset in numpy.ndindex(self._size, self._size, self._size):
            places = [slice(o, o + end, self._stride) for o, end in zip(offset, ends)]
            shifted = x[(slice(None), *places, slice(None))]
            result = shifted if result is None else self._pair(result, shifted)
        return result / self._divisor


class Times(layers.Layer):
    """Multiply by a constant; Keras' Rescaling would round it to float32."""

    def __init__(self, factor: float, **options: Any) -> None:
        super().__init__(**options)
        self._factor = factor

    def call(self, x: Any) -> Any:
        """Multiply."""
        return x * self._factor


class ExactLeakyReLU(layers.Layer):
    """LeakyReLU whose slope is not rounded to float32, as TensorFlow's operation does."""

    def __init__(self, slope: float, **options: Any) -> None:
        super().__init__(**options)
        self._slope = slope

    def call(self, x: Any) -> Any:
        """Bend."""
        return ops.where(x > 0, x, self._slope * x)


def _is_float64() -> bool:
    return bool(keras.config.dtype_policy().compute_dtype == "float64")


def _conv(spot: Spot) -> List[Any]:
    layer = spot.layer
    assert isinstance(layer, Conv)
    form = padding(layer.kernel, layer.stride, layer.pad[0], spot.input[1:], spot.output[1:])
    rank = len(spot.input) - 1
    pads = form.first[0] if rank == 1 else form.first
    convolution = (layers.Conv1D, layers.Conv2D, layers.Conv3D)[rank - 1](
        layer.channels,
        layer.kernel,
        strides=layer.stride,
        padding=form.word.lower(),
        groups=layer.groups,
        use_bias=layer.bias,
        kernel_initializer=keras.initializers.VarianceScaling(2.0, "fan_out", "untruncated_normal"),
    )
    if not form.is_explicit:
        return [convolution]
    zeros = (layers.ZeroPadding1D, layers.ZeroPadding2D, layers.ZeroPadding3D)[rank - 1]
    return [zeros(pads), convolution]


def _dense(spot: Spot) -> List[Any]:
    layer = spot.layer
    assert isinstance(layer, Dense)
    normal = keras.initializers.RandomNormal(stddev=layer.deviation)
    return [layers.Dense(layer.features, use_bias=layer.bias, kernel_initializer=normal)]


def _batch_norm(spot: Spot) -> List[Any]:
    layer = spot.layer
    assert isinstance(layer, BatchNorm)
    return [layers.BatchNormalization(momentum=1 - layer.momentum, epsilon=layer.epsilon)]


def _max_pool(spot: Spot) -> List[Any]:
    layer = spot.layer
    assert isinstance(layer, MaxPool)
    form = padding(layer.kernel, layer.stride, layer.pad[0], spot.input[1:], spot.output[1:])
    kinds = layers.MaxPooling1D, layers.MaxPooling2D, layers.MaxPooling3D, ops.maximum
    pool = _pool(spot, kinds, form.word.lower())
    return [LowestPadding(form.first), pool] if form.is_explicit else [pool]


def _average_pool(spot: Spot) -> List[Any]:
    kinds = layers.AveragePooling1D, layers.AveragePooling2D, layers.AveragePooling3D, ops.add
    return [_pool(spot, kinds, "valid")]


def _pool(spot: Spot, kinds: Tuple[Any, Any, Any, Any], word: str) -> Any:
    layer, rank = spot.layer, len(spot.input) - 1
    assert isinstance(layer, (MaxPool, AveragePool))
    if rank == 3 and _is_float64():
        divisor = layer.kernel**3 if isinstance(layer, AveragePool) else 1
        assert word == "valid", "SAME would need a pad"
        return ShiftedPool(layer.kernel, layer.stride, kinds[3], divisor)
    return kinds[rank - 1](layer.kernel, strides=layer.stride, padding=word)


def _global_average(spot: Spot) -> List[Any]:
    kinds = (
        layers.GlobalAveragePooling1D,
        layers.GlobalAveragePooling2D,
        layers.GlobalAveragePooling3D,
    )
    return [kinds[len(spot.input) - 2]()]


def _lrn(spot: Spot) -> List[Any]:
    assert isinstance(spot.layer, LRN)
    return [LocalResponseNormalization(spot.layer)]


def _dropout(spot: Spot) -> List[Any]:
    assert isinstance(spot.layer, Dropout)
    return [layers.Dropout(spot.layer.rate)]


def _leaky_relu(spot: Spot) -> List[Any]:
    assert isinstance(spot.layer, LeakyReLU)
    slope = spot.layer.slope
    return [ExactLeakyReLU(slope) if _is_float64() else layers.LeakyReLU(negative_slope=slope)]


def _scale(spot: Spot) -> List[Any]:
    assert isinstance(spot.layer, Scale)
    return [Times(spot.layer.factor)]


LAYERS: Dict[Type[Any], Callable[[Spot], List[Any]]] = {
    AveragePool: _average_pool,
    BatchNorm: _batch_norm,
    Conv: _conv,
    Dense: _dense,
    Dropout: _dropout,
    Flatten: lambda _: [layers.Flatten()],
    GlobalAverage: _global_average,
    LeakyReLU: _leaky_relu,
    LRN: _lrn,
    MaxPool: _max_pool,
    ReLU: lambda _: [layers.ReLU()],
    Scale: _scale,
    Tanh: lambda _: [layers.Activation("tanh")],
    **SEQUENCE_LAYERS,
}
