"""Count the products that a layer adds up: rounding grows with the root of their number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harness.worker.network.layers import (
    LRN,
    AveragePool,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Flatten,
    GlobalAverage,
    Layer,
    LeakyReLU,
    MaxPool,
    ReLU,
    Scale,
    Tanh,
)
from harness.worker.network.rule import SequenceShape, product
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
from harness.worker.network.shapes import Site, parameter_shapes


def summed(site: Site, samples: int) -> int:
    """Count the products that a layer's largest sum adds up, forward or backward; 0: no sum."""
    return SUMMED[type(site.layer)](site.layer, site, samples)


def _weighed(_layer: Conv | Dense, site: Site, samples: int) -> int:
    _, weight = parameter_shapes(site)[0]
    taps = product(weight[2:])
    return max(weight[0] * taps, weight[1] * taps, _positions(_layer, site, samples))


def _positions(_layer: Layer, site: Site, samples: int) -> int:
    is_sequence = isinstance(site.output, SequenceShape)
    return samples * product(site.output[:-1] if is_sequence else site.output[1:])


def _tied(layer: TiedDense, site: Site, samples: int) -> int:
    return max(layer.features, site.input[-1], _positions(layer, site, samples))


def _of_a_position(layer: Layer, site: Site, samples: int) -> int:
    return max(site.input[-1], _positions(layer, site, samples))


def _samples(_layer: Layer, _site: Site, samples: int) -> int:
    return samples


def _mixed(layer: Attention, site: Site, _samples: int) -> int:
    """Count what meets a query, or what a key gets back from all queries that share it."""
    return max(layer.head, site.input[0] * (layer.heads // layer.kv_heads))


def _windows(layer: MaxPool, site: Site, _samples: int) -> int:
    """Count the windows whose largest value one may be: their gradients add up."""
    return int((-(-layer.kernel // layer.stride)) ** (len(site.input) - 1))


def _no_sum(_layer: Layer, _site: Site, _samples: int) -> int:
    return 0


SUMMED: Mapping[type, Callable[[Any, Site, int], int]] = {
    Conv: _weighed,
    Dense: _weighed,
    BatchNorm: _positions,
    ReLU: _no_sum,
    LeakyReLU: _no_sum,
    # A slope is 1 - tanh², which loses what a few roundings of tanh are.
    Tanh: lambda *_: 1,
    Scale: _no_sum,
    LRN: lambda layer, *_: layer.size,
    MaxPool: _windows,
    AveragePool: lambda layer, site, _: layer.kernel ** (len(site.input) - 1),
    GlobalAverage: lambda _, site, __: product(site.input[1:]),
    Flatten: _no_sum,
    Dropout: _no_sum,
    Embedding: _positions,
    Segments: lambda layer, site, samples: samples * site.input[0] // layer.count,
    Positions: _samples,
    ClassToken: _samples,
    ToSequence: _no_sum,
    LayerNorm: _of_a_position,
    RMSNorm: _of_a_position,
    Attention: _mixed,
    # As a Tanh's: what is near 1 is taken from 1. By tanh it is then multiplied by up to eight: a
    # gradient is 41 roundings of float32 off in the worst of 10 million in JAX, at an input of 4.9,
    # and 63 in TensorFlow.
    GELU: lambda layer, *_: 16 if layer.tanh else 1,
    SiLU: lambda *_: 1,
    Select: _no_sum,
    Gather: _no_sum,
    TiedDense: _tied,
}
