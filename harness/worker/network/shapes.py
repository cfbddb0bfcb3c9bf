"""Count a network with no framework: shapes, parameters, multiplications, activations.

Shapes are one sample's, channels first; a flat sample has one dimension. A layer inside a residual
is called ``residual/layer``, its parameters ``residual/layer/weight`` and so on, as in
``gate/subject.py``. The order is that of computing: body, shortcut, then the sum, which carries the
residual's own name. What each layer word means stands in ``layer_rules.py``.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import List, NamedTuple, Optional, Sequence, Set, Tuple

from harness.worker.network.layer_rules import RULES, ImpossibleNetwork, Parameter, Shape, product
from harness.worker.network.layers import Dropout, Layer, Network


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


def parameters(site: Site) -> List[Tuple[str, Parameter]]:
    """Name what a layer trains: weight and bias, or a batch norm's gamma and beta."""
    held = RULES[type(site.layer)].parameters(site.layer, site.input)
    return [(site.path + "/" + one.kind, one) for one in held]


def parameter_shapes(site: Site) -> List[Tuple[str, Shape]]:
    """Give the shape of each parameter by its name."""
    return [(name, one.shape) for name, one in parameters(site)]


def statistics(site: Site) -> List[Tuple[str, Parameter]]:
    """Name what follows the batches without being trained: a batch norm's mean and variance."""
    held = RULES[type(site.layer)].statistics(site.layer, site.input)
    return [(site.path + "/" + one.kind, one) for one in held]


def statistic_shapes(site: Site) -> List[Tuple[str, Shape]]:
    """Give the shape of each running statistic by its name."""
    return [(name, one.shape) for name, one in statistics(site)]


def decayed(network: Network) -> List[str]:
    """Name the parameters that weight decay touches: weights, no bias, no norm."""
    return [
        name for site in sites(network) for name, one in parameters(site) if one.kind == "weight"
    ]


def count(network: Network, input: Optional[Shape] = None) -> Counts:  # noqa: A002 - as Network
    """Count a network, on its own input or another one."""
    walked = sites(network, input)
    return Counts(
        parameters=sum(product(shape) for site in walked for _, shape in parameter_shapes(site)),
        macs=sum(_macs(site) for site in walked),
        activations=sum(product(site.output) for site in walked if RULES[type(site.layer)].writes),
        shapes=tuple((site.path, site.output) for site in walked),
    )


def macs_of_step(network: Network) -> int:
    """Count the multiplications of a sample's training step: forward, and two gradients.

    Nobody needs the gradient of what is given: layers with nothing trained before them have one.
    """
    macs = {site.path: _macs(site) for site in sites(network)}
    return 3 * sum(macs.values()) - sum(macs[path] for path in given_inputs(network))


def given_inputs(network: Network) -> List[str]:
    """Name the layers that nothing trained stands before; the last of a row may be trained."""
    trained = {site.path for site in sites(network) if parameters(site)}
    return _given(network.layers, "", trained)


def _given(layers: Sequence[Layer], prefix: str, trained: Set[str]) -> List[str]:
    found: List[str] = []
    for layer in layers:
        path = prefix + layer.name
        branches = RULES[type(layer)].branches(layer)
        for branch in branches:
            found += _given(branch, path + "/", trained)
        found += [] if branches else [path]
        if any(name == path or name.startswith(path + "/") for name in trained):
            break
    return found


def _macs(site: Site) -> int:
    held = parameter_shapes(site)
    return RULES[type(site.layer)].macs(held[0][1] if held else (), site.output)


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
    if type(layer) not in RULES:
        raise ImpossibleNetwork(path, "nothing counts a {}".format(type(layer).__name__))
    rule = RULES[type(layer)]
    inner: Set[str] = set()
    ends = []
    for branch in rule.branches(layer):
        end = shape
        for one in branch:
            end = _enter(one, end, path + "/", inner, found)
        ends.append(end)
    output = rule.output(layer, path, *(ends or [shape]))
    found.append(Site(path, layer, shape, output))
    return output


def couples_samples(network: Network) -> bool:
    """Tell whether what a sample gives depends on the others of its batch."""
    return any(statistic_shapes(site) for site in sites(network))


def has_dropout(network: Network) -> bool:
    """Tell whether a network's gradients depend on masks that a step draws."""
    return any(isinstance(site.layer, Dropout) for site in sites(network))
