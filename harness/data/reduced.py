"""This file chooses the sample size at which a network is examined.

In float64 a full ResNet-50 or CosmoFlow takes minutes. Sizes shrink by multiples of 32, so that
every stride meets the remainders that it meets at full size; the largest affordable one is taken.
"""

from __future__ import annotations

from harness.node.network import BatchNorm, Network
from harness.node.shapes import ImpossibleNetwork, count, sites

Shape = tuple[int, ...]

_STEP = 32
_MOST_MACS = 1.5e9
_MOST_PARAMETERS = 30e6


def samples(network: Network) -> int:
    """Choose a small batch; a batch norm needs a few more samples to say something."""
    return 4 if any(isinstance(site.layer, BatchNorm) for site in sites(network)) else 2


def reduced(network: Network) -> Shape | None:
    """Give the sample shape to examine at; None is the network's own."""
    channels, *spatial = network.input
    if not spatial:
        return None
    possible: list[Shape] = []
    for less in range(0, min(spatial), _STEP):
        shape = (channels, *(size - less for size in spatial))
        try:
            counts = count(network, shape)
        except ImpossibleNetwork:
            break
        possible.append(shape)
        if counts.macs * samples(network) <= _MOST_MACS and counts.parameters <= _MOST_PARAMETERS:
            break
    return possible[-1] if possible[-1] != network.input else None
