"""Count a network with no framework: shapes, parameters, multiplications, activations.

Shapes are one sample's, channels first; a flat sample has one dimension, a sequence has positions
and features. A layer inside a residual or a product is called ``residual/layer``, its parameters
``residual/layer/weight`` and so on, as in ``gate/subject.py``. The order is that of computing:
body, shortcut, then the sum, which carries the residual's own name. What each layer word means
stands in ``layer_rules.py``.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from harness.worker.network.layer_rules import RULES
from harness.worker.network.layers import Dropout, Heads, Layer, Network, Product, Residual
from harness.worker.network.rule import ImpossibleNetwork, Parameter, Shape, product
from harness.worker.network.sequence_layers import Embedding, TiedDense


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
    """Multiplications of convolutions, dense layers and attention (at all positions), forward."""
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
    shape = network.input if input is None else input
    if not 1 <= len(shape) <= 4 or any(size < 1 for size in shape):
        raise ImpossibleNetwork("input", "{} is not channels and up to 3 dimensions".format(shape))
    found: List[Site] = []
    _walk(network.layers, shape, "", found)
    _refuse_misplaced(found)
    return found


def vocabulary(network: Network) -> Optional[int]:
    """Say below what the class numbers are that a network is fed; None: it is fed numbers."""
    first = network.layers[0] if network.layers else None
    return first.vocabulary if isinstance(first, Embedding) else None


def borrowed(site: Site) -> Optional[str]:
    """Name the weight of another layer that this one multiplies by, and trains with it."""
    return site.layer.to + "/weight" if isinstance(site.layer, TiedDense) else None


def operands(site: Site) -> Dict[str, str]:
    """Name what a layer multiplies by or adds, by its kind: its own, and another layer's weight."""
    names = {one.kind: name for name, one in parameters(site)}
    tied = borrowed(site)
    return names if tied is None else {**names, "weight": tied}


def _refuse_misplaced(walked: Sequence[Site]) -> None:
    for site in walked[1:]:
        if isinstance(site.layer, Embedding):
            raise ImpossibleNetwork(site.path, "tokens enter at the first layer only")
    for site in walked[:-1]:
        if isinstance(site.layer, Heads):
            raise ImpossibleNetwork(site.path, "two heads stand at the end only")
    for site in walked:
        if borrowed(site) is not None:
            _refuse_untied(site, walked[0])


def _refuse_untied(site: Site, first: Site) -> None:
    """Hold what is tied to the table that it names."""
    assert isinstance(site.layer, TiedDense)
    if not isinstance(first.layer, Embedding) or first.path != site.layer.to:
        raise ImpossibleNetwork(site.path, "no embedding is called '{}'".format(site.layer.to))
    held, needed = (
        (first.layer.vocabulary, first.layer.features),
        (site.layer.features, site.input[-1]),
    )
    if held != needed:
        raise ImpossibleNetwork(
            site.path,
            "it needs a table of {}, and that of '{}' has {}".format(needed, first.path, held),
        )


def output_shapes(
    network: Network,
    input: Optional[Shape] = None,  # noqa: A002 - as Network
) -> List[Tuple[str, Shape]]:
    """Give every layer's path and output shape, in the order of computing."""
    return [(site.path, site.output) for site in sites(network, input)]


def parameters(site: Site) -> List[Tuple[str, Parameter]]:
    """Name what a layer trains: weight and bias, or a norm's gamma and beta."""
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
    """Name the parameters that weight decay touches: weights (of two dimensions or more), no bias,
    no norm.
    """
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
    return sum(forward + backward for forward, backward in macs_of_passes(network).values())


def macs_of_passes(network: Network) -> Dict[str, Tuple[int, int]]:
    """Count what each layer multiplies of a sample, forward and backward, as ``macs_of_step``."""
    macs = {site.path: _macs(site) for site in sites(network)}
    first = given_inputs(network)
    return {path: (one, one * (1 if path in first else 2)) for path, one in macs.items()}


def given_inputs(network: Network) -> List[str]:
    """Name the layers that nothing trained stands before; the last of a row may be trained."""
    trained = {site.path for site in sites(network) if parameters(site)}
    return _given(network.layers, "", trained)


def _given(layers: Sequence[Layer], prefix: str, trained: Set[str]) -> List[str]:
    found: List[str] = []
    for layer in layers:
        path = prefix + layer.name
        inner = branches(layer)
        for branch in inner:
            found += _given(branch, path + "/", trained)
        found += [] if inner else [path]
        if any(name == path or name.startswith(path + "/") for name in trained):
            break
    return found


def _macs(site: Site) -> int:
    return RULES[type(site.layer)].macs(site.layer, site.input, site.output)


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


def branches(layer: Layer) -> Sequence[Sequence[Layer]]:
    """Give the rows of layers inside one, which all start from its input."""
    return RULES[type(layer)].branches(layer)


def with_branches(layer: Layer, change: Callable[[Sequence[Layer]], Tuple[Layer, ...]]) -> Layer:
    """Change each row of layers inside one."""
    if isinstance(layer, Residual):
        return replace(layer, body=change(layer.body), shortcut=change(layer.shortcut))
    if isinstance(layer, Product):
        return replace(layer, body=change(layer.body), gate=change(layer.gate))
    if isinstance(layer, Heads):
        return replace(layer, positions=change(layer.positions), sample=change(layer.sample))
    return layer


def couples_samples(network: Network) -> bool:
    """Tell whether what a sample gives depends on the others of its batch."""
    return any(statistic_shapes(site) for site in sites(network))


def has_dropout(network: Network) -> bool:
    """Tell whether a network's gradients depend on masks that a step draws."""
    return any(isinstance(site.layer, Dropout) for site in sites(network))
