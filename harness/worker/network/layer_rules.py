"""The meaning of each layer word: the shape it gives, what it holds, multiplies and writes.

Every word of ``network.py`` stands in ``RULES``; one that is missing there is refused, so that
nothing of it can go uncounted. ``tests/contracts`` names the other places that a word needs.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Sequence, Tuple

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
    Residual,
    Scale,
    Tanh,
)

Shape = Tuple[int, ...]


class ImpossibleNetwork(ValueError):
    """Say which layer cannot be, and why."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__("layer '{}': {}".format(path, why))


class Parameter(NamedTuple):
    """Numbers that a layer holds: weight, bias, gamma, beta; running mean and variance."""

    kind: str
    shape: Shape
    mean: float
    deviation: float
    """Of the normal distribution that it starts from; 0: all of it starts at the mean."""


class Rule(NamedTuple):
    """What one layer word means to whoever counts it; no part has a default."""

    output: Callable[..., Shape]
    """From the layer, its path and its input's shape (or each branch's end) to what it gives."""
    parameters: Callable[[Any, Shape], Sequence[Parameter]]
    """What is trained."""
    statistics: Callable[[Any, Shape], Sequence[Parameter]]
    """What follows the batches without being trained."""
    macs: Callable[[Shape, Shape], int]
    """From the shapes of its first parameter and of its output: multiplications of a sample."""
    writes: bool
    """Whether its output is new memory, with nothing done in place."""
    branches: Callable[[Any], Sequence[Sequence[Layer]]]
    """The rows of layers inside it, which all start from its input."""


def product(numbers: Sequence[int]) -> int:
    """Multiply integers (``math.prod`` came with Python 3.8)."""
    total = 1
    for number in numbers:
        total *= number
    return total


def _same(_layer: Layer, _path: str, shape: Shape) -> Shape:
    return shape


def _dense(layer: Dense, path: str, shape: Shape) -> Shape:
    _positive(path, features=layer.features)
    if len(shape) != 1:
        raise ImpossibleNetwork(path, "it needs a flat input, not {}".format(shape))
    return (layer.features,)


def _global_average(_layer: GlobalAverage, path: str, shape: Shape) -> Shape:
    _spatial(path, shape)
    return shape[:1]


def _flatten(_layer: Flatten, _path: str, shape: Shape) -> Shape:
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
    _positive(path, channels=layer.channels, groups=layer.groups)
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
    _positive(path, kernel=layer.kernel, stride=layer.stride)
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
    if len(shape) < 2:
        raise ImpossibleNetwork(path, "it needs spatial dimensions, not a flat {}".format(shape))


def _positive(path: str, **sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ImpossibleNetwork(path, "{} {} is not positive".format(name, size))


def _sum(layer: Residual, path: str, body: Shape, shortcut: Shape) -> Shape:
    if not layer.body:
        raise ImpossibleNetwork(path, "its body is empty")
    if body != shortcut:
        raise ImpossibleNetwork(
            path, "its body gives {} and its shortcut {}, which do not add".format(body, shortcut)
        )
    return body


def _conv_parameters(layer: Conv, shape: Shape) -> Sequence[Parameter]:
    """Start Kaiming-normal by fan-out."""
    kernel = (layer.kernel,) * (len(shape) - 1)
    deviation = (2 / (layer.channels * product(kernel))) ** 0.5
    weight = (layer.channels, shape[0] // layer.groups, *kernel)
    bias = Parameter("bias", (layer.channels,), 0.0, 0.0)
    return [Parameter("weight", weight, 0.0, deviation), *([bias] if layer.bias else [])]


def _dense_parameters(layer: Dense, shape: Shape) -> Sequence[Parameter]:
    weight = Parameter("weight", (layer.features, shape[0]), 0.0, 0.01)
    bias = Parameter("bias", (layer.features,), 0.0, 0.0)
    return [weight, *([bias] if layer.bias else [])]


def _norm_parameters(_layer: BatchNorm, shape: Shape) -> Sequence[Parameter]:
    return [Parameter("gamma", shape[:1], 1.0, 0.0), Parameter("beta", shape[:1], 0.0, 0.0)]


def _norm_statistics(_layer: BatchNorm, shape: Shape) -> Sequence[Parameter]:
    return [Parameter("mean", shape[:1], 0.0, 0.0), Parameter("variance", shape[:1], 1.0, 0.0)]


def _nothing(_layer: Layer, _shape: Shape) -> Sequence[Parameter]:
    return ()


def _at_all_positions(weight: Shape, output: Shape) -> int:
    """Multiply each weight once at every position of the output."""
    return product(weight) * product(output[1:])


def _none(_first: Shape, _output: Shape) -> int:
    return 0


def _alone(_layer: Layer) -> Sequence[Sequence[Layer]]:
    return ()


def _bare(output: Callable[..., Shape]) -> Rule:
    """Describe a word that holds no number of its own and multiplies by no weight."""
    return Rule(output, _nothing, _nothing, _none, True, _alone)


RULES: Dict[type, Rule] = {
    Conv: Rule(_conv, _conv_parameters, _nothing, _at_all_positions, True, _alone),
    Dense: Rule(_dense, _dense_parameters, _nothing, _at_all_positions, True, _alone),
    BatchNorm: Rule(_same, _norm_parameters, _norm_statistics, _none, True, _alone),
    ReLU: _bare(_same),
    LeakyReLU: _bare(_same),
    Tanh: _bare(_same),
    Scale: _bare(_same),
    LRN: _bare(_lrn),
    MaxPool: _bare(_max_pool),
    AveragePool: _bare(_average_pool),
    GlobalAverage: _bare(_global_average),
    Flatten: Rule(_flatten, _nothing, _nothing, _none, False, _alone),
    Dropout: _bare(_dropout),
    Residual: Rule(
        _sum,
        _nothing,
        _nothing,
        _none,
        True,
        lambda layer: (layer.body, layer.shortcut),
    ),
}
