"""Derive a workload for each layer of a network: that layer alone, forward, or and backward.

Its name is the network's, the layer's path and the pass: ``resnet50/stage1_block1/conv2/forward``.
The derived network is that one layer on the shape that it has in the network, so that an adapter
lowers it as the gate has it examined. What stands before everything that is trained is asked for no
gradient of its input, as in training, and without parameters it has no backward pass.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional

from harness.worker.network.layer_rules import RULES
from harness.worker.network.layers import Dense, Layer, Network
from harness.worker.network.precisions import Precision
from harness.worker.network.rule import product
from harness.worker.network.sequence_layers import TiedDense
from harness.worker.network.shapes import (
    Site,
    branches,
    count,
    given_inputs,
    macs_of_passes,
    parameters,
    sites,
    statistics,
)
from harness.worker.network.workload import TOKENS, LayerAlone, Training

FORWARD, BOTH = "forward", "forward+backward"
PASSES = (FORWARD, BOTH)
SEPARATOR = "/"
SEPARATED = " | {} | "
"""How a pass stands in the words of what decides how long it takes."""
PASSES_DONE = "passes"
"""The unit of a layer's ceiling: one pass of a batch is one of it."""
SEQUENCES = "sequences"
"""What a layer alone of a network of texts is timed by: what enters it need be no tokens."""
_MOST_DRAWN = 1 << 30
_STATISTIC_BYTES = 4
"""Running statistics are float32 in every precision."""


class NoSuchLayer(ValueError):
    """Say that a network has no such layer, or a layer no such pass; ``known`` names those."""

    def __init__(self, message: str, known: List[str]) -> None:
        super().__init__(message)
        self.known = known


class AloneSite(NamedTuple):
    """A layer that can be timed alone."""

    site: Site
    to_input: bool
    """Whether the gradient of its input is asked for."""

    @property
    def passes(self) -> List[str]:
        """Name the passes that it has."""
        return [*PASSES] if self.to_input or parameters(self.site) else [FORWARD]

    @property
    def shape(self) -> str:
        """Tell layers apart by what they compute, whatever they are called and wherever."""
        layer = replace(_untied(self.site.layer), name="")
        return "{} {} {}".format(layer, self.site.input, "whole" if self.to_input else "first")


def alone_sites(network: Network) -> Iterator[AloneSite]:
    """Give the layers that compute something by themselves, in the order of computing.

    What has layers inside is its parts, and a Flatten moves nothing.
    """
    given = given_inputs(network)
    for site in sites(network):
        if not branches(site.layer) and RULES[type(site.layer)].writes:
            yield AloneSite(site, site.path not in given)


def name_of(network: str, path: str, passes: str) -> str:
    """Name a layer alone."""
    return SEPARATOR.join((network, path, passes))


def least_words(
    shape: str, passes: str, batch: int, precision: str, device: str, threads: Optional[int]
) -> str:
    """Write what decides how long a layer takes on a machine, whatever computes it."""
    rest = ["batch {}".format(batch), precision, device]
    rest += ["threads {}".format(threads)] if threads else []
    return shape + SEPARATED.format(passes) + " | ".join(rest)


class Multiplying(NamedTuple):
    """One pass of a layer that multiplies."""

    site: AloneSite
    passes: str
    words: str


def multiplying(network: Network, batch: int, factors: Mapping[str, Any]) -> Iterator[Multiplying]:
    """Give the passes of layers that multiply, those of equal shape once, the heaviest first.

    Without those for which more would have to be drawn than a process should hold: in float64
    what enters, and the gradient of what leaves.
    """
    macs = macs_of_passes(network)
    alike: Dict[str, List[AloneSite]] = {}
    for one in alone_sites(network):
        drawn = 8 * batch * (product(one.site.input) + product(one.site.output))
        if any(macs[one.site.path]) and drawn <= _MOST_DRAWN:
            alike.setdefault(one.shape, []).append(one)
    ordered = sorted(alike.values(), key=lambda some: -len(some) * sum(macs[some[0].site.path]))
    device = str(factors["device"])
    how = str(factors["precision"]), device, factors["threads"] if device == "cpu" else None
    for first, *_ in ordered:
        for passes in first.passes:
            yield Multiplying(first, passes, least_words(first.shape, passes, batch, *how))


def network_name(workload: str) -> str:
    """Give the network's part of a name; the whole, where it is no layer's."""
    return workload.partition(SEPARATOR)[0]


def layer_alone(training: Training, name: str) -> LayerAlone:
    """Derive the layer that a name stands for; refuse one that the network does not have."""
    rest = name.partition(SEPARATOR)[2]
    path, _, passes = rest.rpartition(SEPARATOR)
    found = {one.site.path: one for one in alone_sites(training.network)}
    known = [name_of(training.name, one, each) for one in found for each in found[one].passes]
    if path not in found or passes not in found[path].passes:
        raise NoSuchLayer("{} has no layer and pass '{}'".format(training.name, rest), known)
    one = found[path]
    layer = replace(_untied(one.site.layer), name=path.rpartition(SEPARATOR)[2])
    network = Network(one.site.input, (layer,))
    counts = count(network)
    own = replace(training, network=network, parameters=counts.parameters, macs=counts.macs)
    return LayerAlone(
        name=name,
        title="{} of {} alone, {}".format(path, training.title, passes),
        unit=SEQUENCES if training.unit == TOKENS else training.unit,
        training=own,
        path=path,
        passes=passes,
        to_input=one.to_input,
    )


def _untied(layer: Layer) -> Layer:
    """Give what multiplies by another layer's table a matrix of its own, of the same size."""
    if isinstance(layer, TiedDense):
        return Dense(layer.name, layer.features, layer.bias)
    return layer


def macs_of(alone: LayerAlone) -> int:
    """Count the multiplications of a sample: forward, and one more for each gradient."""
    gradients = 1 + alone.to_input if alone.passes == BOTH else 0
    return alone.training.macs * (1 + gradients)


def bytes_of(alone: LayerAlone, batch: int, precision: Precision) -> int:
    """Count the bytes of what a batch's pass is given and what it gives, each once.

    So many have to move where no cache keeps them from one step to the next.
    """
    (site,) = sites(alone.training.network)
    flowing = batch * precision.activation_bytes
    entering, leaving = (flowing * product(shape) for shape in (site.input, site.output))
    held = [one for _, one in parameters(site)]
    learned = precision.held_bytes * sum(product(one.shape) for one in held)
    followed = _STATISTIC_BYTES * sum(product(one.shape) for _, one in statistics(site))
    moved = entering + leaving + learned + 2 * followed
    if alone.passes == BOTH:
        moved += leaving + learned + entering * alone.to_input
    return moved
