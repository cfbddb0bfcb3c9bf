"""Count a network with no framework: shapes, parameters, multiplications, activations.

Shapes are one sample's, channels first; a flat sample has one dimension. A layer inside a residual
is called ``residual/layer``, its parameters ``residual/layer/weight`` and so on, as in
``gate/subject.py``. The order is that of computing: body, shortcut, then the sum, which carries the
residual's own name.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import List, NamedTuple, Optional, Sequence, Set, Tuple

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
    MaxPool,
    Network,
    Residual,
)

Shape = Tuple[int, ...]


class ImpossibleNetwork(ValueError):
    """Say which layer cannot be, and why."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__("layer '{}': {}".format(path, why))


class Site(NamedTuple):
    """One layer where it stands: its path, what enters it and what leaves it."""

    path: str
    layer: Layer
    input: Shape
    output: Shape


@dataclass(frozen=True)
class Counts:
    """What a network is, per sample, whatever computes it."""

    parameters: int
    """Trainable ones; running statistics are not."""
    macs: int
    """Multiplications of convolutions and dense layers, forward."""
    activations: int
    """Elements of every layer's output, with nothing done in place; a Flatten moves nothing."""
    shapes: Tuple[Tuple[str, Shape], ...]

    @property
    def identity(self) -> str:
        """Digest the counts and every output shape: equal exactly when the networks agree so far.

        Layer names are left out: renaming a layer does not make another network.
        """
        facts = [self.parameters, self.macs, [shape for _, shape in self.shapes]]
        return hashlib.sha256(json.dumps(facts).encode("ascii")).hexdigest()[:16]


def product(numbers: Sequence[int]) -> int:
    """Multiply integers (``math.prod`` came with Python 3.8)."""
    total = 1
    for number in numbers:
        total *= number
    return total


def sites(network: Network, input: Optional[Shape] = None) -> List[Site]:  # noqa: A002 - as Network
    """Walk a network, on its own input or another one, and refuse what cannot be computed."""
    shape = tuple(network.input if input is None else input)
    if not 1 <= len(shape) <= 4 or any(size < 1 for size in shape):
        raise ImpossibleNetwork("input", "{} is not channels and up to 3 dimensions".format(shape))
    found: List[Site] = []
    _walk(network.layers, shape, "", found)
    return found


def output_shapes(
    network: Network,
    input: Optional[Shape] = None,  # noqa: A002 - as Network
) -> List[Tuple[str, Shape]]:
    """Give every layer's path and output shape, in the order of computing."""
    return [(site.path, site.output) for site in sites(network, input)]


def parameter_shapes(site: Site) -> List[Tuple[str, Shape]]:
    """Name a layer's trainable parameters: weight and bias, or a batch norm's gamma and beta."""
    layer = site.layer
    if isinstance(layer, Conv):
        kernel = (layer.kernel,) * (len(site.input) - 1)
        weight: Shape = (layer.channels, site.input[0] // layer.groups, *kernel)
        named = [("weight", weight), ("bias", (layer.channels,))]
    elif isinstance(layer, Dense):
        named = [("weight", (layer.features, site.input[0])), ("bias", (layer.features,))]
    elif isinstance(layer, BatchNorm):
        return [(site.path + "/" + kind, site.input[:1]) for kind in ("gamma", "beta")]
    else:
        return []
    return [
        (site.path + "/" + kind, shape) for kind, shape in named if kind != "bias" or layer.bias
    ]


def count(network: Network, input: Optional[Shape] = None) -> Counts:  # noqa: A002 - as Network
    """Count a network, on its own input or another one."""
    walked = sites(network, input)
    return Counts(
        parameters=sum(product(shape) for site in walked for _, shape in parameter_shapes(site)),
        macs=sum(_macs(site) for site in walked),
        activations=sum(
            product(site.output) for site in walked if not isinstance(site.layer, Flatten)
        ),
        shapes=tuple((site.path, site.output) for site in walked),
    )


def _macs(site: Site) -> int:
    """Each weight of a convolution multiplies once at every output position, a dense one once."""
    if not isinstance(site.layer, (Conv, Dense)):
        return 0
    _, weight = parameter_shapes(site)[0]
    return product(weight) * product(site.output[1:])


def _walk(layers: Sequence[Layer], shape: Shape, prefix: str, found: List[Site]) -> Shape:
    names: Set[str] = set()
    for layer in layers:
        shape = _enter(layer, shape, prefix, names, found)
    return shape


def _enter(layer: Layer, shape: Shape, prefix: str, names: Set[str], found: List[Site]) -> Shape:
    path = prefix + layer.name
    if not layer.name.isidentifier():
        raise ImpossibleNetwork(path, "a name has letters, digits and underscores only")
    if layer.name in names:
        raise ImpossibleNetwork(path, "another layer beside it has the same name")
    names.add(layer.name)
    if isinstance(layer, Residual):
        output = _residual(layer, shape, path, found)
    else:
        output = _output(layer, shape, path)
    found.append(Site(path, layer, shape, output))
    return output


def _residual(layer: Residual, shape: Shape, path: str, found: List[Site]) -> Shape:
    if not layer.body:
        raise ImpossibleNetwork(path, "its body is empty")
    names: Set[str] = set()
    ends = []
    for branch in (layer.body, layer.shortcut):
        end = shape
        for inner in branch:
            end = _enter(inner, end, path + "/", names, found)
        ends.append(end)
    if ends[0] != ends[1]:
        raise ImpossibleNetwork(
            path, "its body gives {} and its shortcut {}, which do not add".format(*ends)
        )
    return ends[0]


def _output(layer: Layer, shape: Shape, path: str) -> Shape:
    if isinstance(layer, Conv):
        return _conv(layer, shape, path)
    if isinstance(layer, (MaxPool, AveragePool)):
        return _pool(layer, shape, path)
    if isinstance(layer, Dense):
        _positive(path, features=layer.features)
        if len(shape) != 1:
            raise ImpossibleNetwork(path, "it needs a flat input, not {}".format(shape))
        return (layer.features,)
    if isinstance(layer, GlobalAverage):
        _spatial(shape, path)
        return shape[:1]
    if isinstance(layer, Flatten):
        return (product(shape),)
    if isinstance(layer, LRN):
        _spatial(shape, path)
        if layer.size < 1 or layer.size % 2 == 0:
            raise ImpossibleNetwork(path, "size {} is not odd".format(layer.size))
    if isinstance(layer, Dropout) and not 0 <= layer.rate < 1:
        raise ImpossibleNetwork(path, "rate {} is not in [0, 1)".format(layer.rate))
    return shape


def _conv(layer: Conv, shape: Shape, path: str) -> Shape:
    _spatial(shape, path)
    _positive(path, channels=layer.channels, groups=layer.groups)
    if shape[0] % layer.groups or layer.channels % layer.groups:
        raise ImpossibleNetwork(
            path,
            "{} groups do not divide its {} input and {} output channels".format(
                layer.groups, shape[0], layer.channels
            ),
        )
    return (layer.channels, *_windows(layer, shape, path, layer.pad))


def _pool(layer: Layer, shape: Shape, path: str) -> Shape:
    assert isinstance(layer, (MaxPool, AveragePool))
    _spatial(shape, path)
    if isinstance(layer, AveragePool):
        return (shape[0], *_windows(layer, shape, path, (0, 0)))
    if max(layer.pad) >= layer.kernel:
        raise ImpossibleNetwork(path, "pad {} leaves a window no value".format(layer.pad))
    return (shape[0], *_windows(layer, shape, path, layer.pad, ceil=layer.ceil))


def _windows(
    layer: Layer, shape: Shape, path: str, pad: Tuple[int, int], ceil: bool = False
) -> Shape:
    """Count the windows along each spatial dimension."""
    assert isinstance(layer, (Conv, MaxPool, AveragePool))
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


def _spatial(shape: Shape, path: str) -> None:
    if len(shape) < 2:
        raise ImpossibleNetwork(path, "it needs spatial dimensions, not a flat {}".format(shape))


def _positive(path: str, **sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ImpossibleNetwork(path, "{} {} is not positive".format(name, size))
