"""Scale part of a layer's inputs so that a wrong constant shows beyond any rounding.

An epsilon of 1e-5 beside a variance of 1 changes less than rounding does, as do an alpha of 1e-4
beside a k of 1, and a small slope beside what is positive. So of every second channel or sample the
inputs are brought to where the constant weighs in the result, and the others stay as they came. The
two parts are compared apart: neither is measured by the other's size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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

Array = npt.NDArray[np.float64]

_LOUDEST = 128.0
"""A square of it is still a number in fp16."""

_CHANNELS, _SAMPLES = 1, 0


@dataclass(frozen=True)
class TensorPart:
    """Some channels or samples of a layer's tensors."""

    words: str = ""
    axis: int = 0
    first: int = 0
    step: int = 1

    def of(self, values: Array) -> Array:
        """Take this part of an activation."""
        return values[(*[slice(None)] * self.axis, slice(self.first, None, self.step))]

    def of_parameter(self, values: Array) -> Array:
        """Take this part of what a layer holds: one number a channel, or not told apart."""
        return values[self.first :: self.step] if self.axis == _CHANNELS else values


def with_sensitive_part(layer: Any, values: Array) -> Array:
    """Give a layer's inputs with one part scaled so that its constants show."""
    sensitive = SENSITIVE[type(layer)]
    if sensitive is None:
        return values
    part = parts(layer, values.shape)[-1]
    bring, _, _ = sensitive
    result = values.copy()
    part.of(result)[...] = bring(layer, part.of(values))
    return result


def parts(layer: Any, shape: tuple[int, ...]) -> list[TensorPart]:
    """List the parts of a layer's tensors that are compared separately."""
    sensitive = SENSITIVE[type(layer)]
    if sensitive is None:
        return [TensorPart()]
    _, axis, words = sensitive
    if shape[axis] == 1:
        return [TensorPart(words, axis)]
    return [TensorPart("", axis, 0, 2), TensorPart(words, axis, 1, 2)]


def _faint(layer: BatchNorm, values: Array) -> Array:
    """Make the variance as large as epsilon."""
    others = tuple(axis for axis in range(values.ndim) if axis != _CHANNELS)
    variance = values.var(axis=others, keepdims=True)
    factor = np.sqrt(layer.epsilon / np.where(variance > 0, variance, layer.epsilon))
    brought: Array = values * factor
    return brought


def _loud(layer: LRN, values: Array) -> Array:
    """Make what alpha multiplies as large as k, on the average, if fp16 can still square it.

    Where alpha is small, as in AlexNet's of Caffe, only the largest values come near k.
    """
    mean_square, largest = float(np.mean(np.square(values))), float(np.max(np.abs(values)))
    weight = layer.alpha * layer.size * mean_square
    if not weight or layer.k <= 0:
        return values
    return values * min(float(np.sqrt(layer.k / weight)), _LOUDEST / largest)


def _even(layer: LayerNorm, values: Array) -> Array:
    """Make each position's variance as large as epsilon."""
    return _shrunk(values, values.var(axis=-1, keepdims=True), layer.epsilon)


def _small(layer: RMSNorm, values: Array) -> Array:
    """Make each position's mean square as large as epsilon."""
    return _shrunk(values, np.square(values).mean(axis=-1, keepdims=True), layer.epsilon)


def _shrunk(values: Array, squares: Array, epsilon: float) -> Array:
    brought: Array = values * np.sqrt(epsilon / np.where(squares > 0, squares, epsilon))
    return brought


def _negative(_: LeakyReLU, values: Array) -> Array:
    result: Array = -np.abs(values)
    return result


SENSITIVE: Mapping[type, tuple[Callable[[Any, Array], Array], int, str] | None] = {
    Conv: None,
    Dense: None,
    BatchNorm: (_faint, _CHANNELS, "of channels whose variance is as small as epsilon"),
    LRN: (_loud, _SAMPLES, "of samples whose squares weigh beside k"),
    ReLU: None,
    Tanh: None,
    Scale: None,
    MaxPool: None,
    AveragePool: None,
    GlobalAverage: None,
    Flatten: None,
    Dropout: None,
    LeakyReLU: (_negative, _SAMPLES, "of samples below zero"),
    Embedding: None,
    Segments: None,
    Positions: None,
    ClassToken: None,
    ToSequence: None,
    LayerNorm: (_even, _SAMPLES, "of samples whose variance is as small as epsilon"),
    RMSNorm: (_small, _SAMPLES, "of samples whose mean square is as small as epsilon"),
    Attention: None,
    GELU: None,
    SiLU: None,
    Select: None,
    Gather: None,
    TiedDense: None,
}
"""None: a layer has no constant, or one that no rounding hides."""
