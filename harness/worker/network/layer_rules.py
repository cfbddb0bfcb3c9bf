"""The meaning of each layer word: the shape it gives, what it holds, multiplies and writes.

Every word of ``layers.py`` stands in ``RULES``; one that is missing there is refused, so that
nothing of it can go uncounted. ``tests/contracts`` names the other places that a word needs.
"""

from __future__ import annotations

from typing import Any, Dict, Sequence, Tuple

from harness.worker.network.layers import (
    LRN,
    AveragePool,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Flatten,
    GlobalAverage,
    Heads,
    LeakyReLU,
    MaxPool,
    Product,
    ReLU,
    Residual,
    Scale,
    Tanh,
)
from harness.worker.network.rule import (
    DRAWN,
    INPUT,
    NONE,
    RESULT,
    HeadsShape,
    ImpossibleNetwork,
    Parameter,
    Rule,
    SequenceShape,
    Shape,
    bare,
    no_branches,
    no_macs,
    nothing,
    positive,
    product,
    same,
)
from harness.worker.network.sequence_rules import SEQUENCE_RULES, by_matrix


def _dense(layer: Dense, path: str, shape: Shape) -> Shape:
    positive(path, features=layer.features)
    if isinstance(shape, SequenceShape):
        return SequenceShape(shape.length, layer.features)
    if len(shape) != 1:
        raise ImpossibleNetwork(path, "it needs a flat input, not {}".format(shape))
    return (layer.features,)


def _global_average(_layer: GlobalAverage, path: str, shape: Shape) -> Shape:
    _spatial(path, shape)
    return shape[:1]


def _batch_norm(_layer: BatchNorm, path: str, shape: Shape) -> Shape:
    _no_sequence(path, shape)
    return shape


def _flatten(_layer: Flatten, path: str, shape: Shape) -> Shape:
    _no_sequence(path, shape)
    return (product(shape),)


def _lrn(layer: LRN, path: str, shape: Shape) -> Shape:
    _spatial(path, shape)
    if layer.size < 1 or layer.size % 2 == 0:
        raise ImpossibleNetwork(path, "size {} is not odd".format(layer.size))
    return shape


def _dropout(layer: Dropout, path: str, shape: Shape) -> Shape:
    if not 0 <= layer.rate < 1:
        raise ImpossibleNetwork(path, "rate {} is not in [0, 1)".format(layer.rate))
    return shape


def _conv(layer: Conv, path: str, shape: Shape) -> Shape:
    _spatial(path, shape)
    positive(path, channels=layer.channels, groups=layer.groups)
    if shape[0] % layer.groups or layer.channels % layer.groups:
        raise ImpossibleNetwork(
            path,
            "{} groups do not divide its {} input and {} output channels".format(
                layer.groups, shape[0], layer.channels
            ),
        )
    return (layer.channels, *_windows(layer, path, shape, layer.pad))


def _average_pool(layer: AveragePool, path: str, shape: Shape) -> Shape:
    _spatial(path, shape)
    return (shape[0], *_windows(layer, path, shape, (0, 0)))


def _max_pool(layer: MaxPool, path: str, shape: Shape) -> Shape:
    _spatial(path, shape)
    if max(layer.pad) >= layer.kernel:
        raise ImpossibleNetwork(path, "pad {} leaves a window no value".format(layer.pad))
    return (shape[0], *_windows(layer, path, shape, layer.pad, ceil=layer.ceil))


def _windows(
    layer: Any, path: str, shape: Shape, pad: Tuple[int, int], ceil: bool = False
) -> Shape:
    """Count the windows along each spatial dimension."""
    positive(path, kernel=layer.kernel, stride=layer.stride)
    before, after = pad
    if min(pad) < 0:
        raise ImpossibleNetwork(path, "pad {} is negative".format(pad))
    counts = []
    for size in shape[1:]:
        room = before + size + after - layer.kernel
        if room < 0:
            raise ImpossibleNetwork(
                path,
                "its kernel of {} does not fit {} padded by {}".format(layer.kernel, shape, pad),
            )
        full = room // layer.stride + 1
        overhang = ceil and room % layer.stride != 0 and full * layer.stride < before + size
        counts.append(full + 1 if overhang else full)
    return tuple(counts)


def _spatial(path: str, shape: Shape) -> None:
    _no_sequence(path, shape)
    if len(shape) < 2:
        raise ImpossibleNetwork(path, "it needs spatial dimensions, not a flat {}".format(shape))


def _no_sequence(path: str, shape: Shape) -> None:
    if isinstance(shape, SequenceShape):
        raise ImpossibleNetwork(path, "it has no meaning for a sequence")


def _sum(layer: Residual, path: str, body: Shape, shortcut: Shape) -> Shape:
    if not layer.body:
        raise ImpossibleNetwork(path, "its body is empty")
    if body != shortcut:
        raise ImpossibleNetwork(
            path, "its body gives {} and its shortcut {}, which do not add".format(body, shortcut)
        )
    return body


def _product(layer: Product, path: str, body: Shape, gate: Shape) -> Shape:
    if not layer.body or not layer.gate:
        raise ImpossibleNetwork(path, "its body or its gate is empty")
    if body != gate:
        raise ImpossibleNetwork(
            path, "its body gives {} and its gate {}, which do not multiply".format(body, gate)
        )
    return body


def _heads(_layer: Heads, path: str, positions: Shape, sample: Shape) -> Shape:
    if not isinstance(positions, SequenceShape) or len(sample) != 1:
        raise ImpossibleNetwork(
            path, "it gives a sequence and a flat sample, not {} and {}".format(positions, sample)
        )
    return HeadsShape(positions.length, positions.features, sample[0])


def _conv_parameters(layer: Conv, shape: Shape) -> Sequence[Parameter]:
    """Start Kaiming-normal by fan-out."""
    kernel = (layer.kernel,) * (len(shape) - 1)
    deviation = (2 / (layer.channels * product(kernel))) ** 0.5
    weight = (layer.channels, shape[0] // layer.groups, *kernel)
    bias = Parameter("bias", (layer.channels,), 0.0, 0.0)
    return [Parameter("weight", weight, 0.0, deviation), *([bias] if layer.bias else [])]


def _dense_parameters(layer: Dense, shape: Shape) -> Sequence[Parameter]:
    weight = Parameter("weight", (layer.features, shape[-1]), 0.0, layer.deviation)
    bias = Parameter("bias", (layer.features,), 0.0, 0.0)
    return [weight, *([bias] if layer.bias else [])]


def _norm_parameters(_layer: BatchNorm, shape: Shape) -> Sequence[Parameter]:
    return [Parameter("gamma", shape[:1], 1.0, 0.0), Parameter("beta", shape[:1], 0.0, 0.0)]


def _norm_statistics(_layer: BatchNorm, shape: Shape) -> Sequence[Parameter]:
    return [Parameter("mean", shape[:1], 0.0, 0.0), Parameter("variance", shape[:1], 1.0, 0.0)]


def _conv_macs(layer: Conv, shape: Shape, output: Shape) -> int:
    """Multiply each weight once at every position of the output."""
    window = product((layer.kernel,) * (len(shape) - 1))
    return product(output) * (shape[0] // layer.groups) * window


RULES: Dict[type, Rule] = {
    Conv: Rule(_conv, _conv_parameters, nothing, _conv_macs, True, no_branches, INPUT),
    Dense: Rule(_dense, _dense_parameters, nothing, by_matrix, True, no_branches, INPUT),
    BatchNorm: Rule(
        _batch_norm, _norm_parameters, _norm_statistics, no_macs, True, no_branches, RESULT
    ),
    ReLU: bare(same, RESULT),
    LeakyReLU: bare(same, RESULT),
    Tanh: bare(same, RESULT),
    Scale: bare(same, NONE),
    LRN: bare(_lrn, RESULT),
    MaxPool: bare(_max_pool, RESULT),
    AveragePool: bare(_average_pool, NONE),
    GlobalAverage: bare(_global_average, NONE),
    Flatten: Rule(_flatten, nothing, nothing, no_macs, False, no_branches, NONE),
    Dropout: bare(_dropout, DRAWN),
    Residual: Rule(
        _sum, nothing, nothing, no_macs, True, lambda layer: (layer.body, layer.shortcut), NONE
    ),
    Product: Rule(
        _product, nothing, nothing, no_macs, True, lambda layer: (layer.body, layer.gate), RESULT
    ),
    Heads: Rule(
        *(_heads, nothing, nothing, no_macs, False),
        lambda layer: (layer.positions, layer.sample),
        NONE,
    ),
    **SEQUENCE_RULES,
}
