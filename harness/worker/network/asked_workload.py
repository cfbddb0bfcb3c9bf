"""Derive the workload that a cell is of from the one that its module describes.

A network that is fed texts can be asked for at another length: the same layers on another number of
tokens. What is learned stays as it is, since a table of positions holds as many as the network
defines. Positions that are taken out of a text, as those that BERT masks, repeat with the length
that they are stated for, so that their share stays: 20 of 128 tokens are 80 of 512.

How attention is computed can be asked for too, which changes nothing that is counted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Mapping, Optional, Sequence, Tuple

from harness.worker.network.layers import Layer, Network
from harness.worker.network.rule import ImpossibleNetwork
from harness.worker.network.sequence_layers import Attention, Gather, Positions
from harness.worker.network.shapes import count, sites, vocabulary, with_branches
from harness.worker.network.workload import Training, Workload

EXAMINED = 512
"""The gate examines a longer text than its network is described at no longer than this, where the
network states no smaller one."""


def asked_workload(workload: Training, name: str, factors: Mapping[str, Any]) -> Workload:
    """Give a network as a cell's factors ask for it, or the layer of it that a cell names."""
    if factors.get("sequence") is not None:
        workload = at_length(workload, factors["sequence"])
    if factors.get("attention") is not None:
        workload = _attending(workload, factors["attention"])
    if "/" not in name:
        return workload
    from harness.worker.network.alone import layer_alone  # few cells are of one layer

    return layer_alone(workload, name)


def own_length(workload: Any) -> Optional[int]:
    """Give how many tokens a sample of a network has as it is described; None: it is fed none."""
    if not isinstance(workload, Training) or vocabulary(workload.network) is None:
        return None
    return workload.network.input[0]


def most_tokens(workload: Training) -> Optional[int]:
    """Give how many positions a network holds; None: any number, since it learns none."""
    layers = [site.layer for site in sites(workload.network)]
    return min((one.length for one in layers if isinstance(one, Positions)), default=None)


def at_length(workload: Training, length: int) -> Training:
    """Give a network on texts of another length; refuse one that its layers cannot take."""
    own = own_length(workload)
    if own is None or own == length:
        return workload
    most = most_tokens(workload)
    if type(length) is not int or length < 1:
        raise ImpossibleNetwork("input", "a text cannot be {!r} tokens long".format(length))
    if most is not None and length > most:
        raise ImpossibleNetwork("positions", "it holds {} positions of {}".format(most, length))
    network = _at(workload.network, length)
    counts = count(network)
    small = workload.shallow
    if small is not None:
        small = _at(small, min(length, small.input[0]))
    elif length > max(own, EXAMINED):
        small = _at(network, max(own, EXAMINED))
    samples = workload.data.samples * own // length
    return replace(
        workload,
        network=network,
        macs=counts.macs,
        shallow=small,
        data=replace(workload.data, samples=max(1, samples)),
    )


def has_attention(workload: Any) -> bool:
    """Tell whether anything in a network mixes positions."""
    if not isinstance(workload, Training):
        return False
    return any(isinstance(site.layer, Attention) for site in sites(workload.network))


def _attending(workload: Training, form: str) -> Training:
    """Say how all attention of a network is to be computed, and of what the gate examines."""

    def formed(layers: Sequence[Layer]) -> Tuple[Layer, ...]:
        inner = (with_branches(one, formed) for one in layers)
        return tuple(
            replace(one, form=form) if isinstance(one, Attention) else one for one in inner
        )

    whole, small = workload.network, workload.shallow
    return replace(
        workload,
        network=replace(whole, layers=formed(whole.layers)),
        shallow=small and replace(small, layers=formed(small.layers)),
    )


def _at(network: Network, length: int) -> Network:
    (own,) = network.input

    def stretched(layers: Sequence[Layer]) -> Tuple[Layer, ...]:
        return tuple(_taken(with_branches(one, stretched), own, length) for one in layers)

    return network if own == length else Network((length,), stretched(network.layers))


def _taken(layer: Layer, own: int, length: int) -> Layer:
    """Repeat positions that are taken, as far as a text goes."""
    if not isinstance(layer, Gather):
        return layer
    starts = range(0, length, own)
    positions = (start + one for start in starts for one in layer.positions)
    return replace(layer, positions=tuple(one for one in positions if one < length))
