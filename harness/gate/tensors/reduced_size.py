"""Choose the sample size at which a network is examined.

In float64 a full ResNet-50 or CosmoFlow takes minutes. Sizes shrink by multiples of 32, so that
every stride meets the remainders that it meets at full size; the largest affordable one is taken.
A network that stays heavy at its smallest (CosmoFlow of Lee et al.: 64³, six times what is thought
affordable) gets a smaller batch and fewer updates: two still tell one momentum from another.
"""

from __future__ import annotations

from harness.worker.network.layers import Network
from harness.worker.network.rule import ImpossibleNetwork
from harness.worker.network.shapes import count, sites, statistic_shapes

Shape = tuple[int, ...]

_STEP = 32
_MOST_MACS = 1.5e9
_MOST_PARAMETERS = 30e6


def samples(network: Network) -> int:
    """Choose a small batch; a batch norm needs a few more samples for its statistics."""
    return 3 if is_heavy(network) else _wanted(network)


def updates(network: Network) -> int:
    """Give the number of the optimiser's updates that are examined."""
    return 2 if is_heavy(network) else 5


def is_heavy(network: Network) -> bool:
    """Whether a network with batch norms costs too much at any size."""
    macs = count(network, reduced(network)).macs
    return _wanted(network) > 2 and macs * _wanted(network) > _MOST_MACS


def _wanted(network: Network) -> int:
    return 4 if any(statistic_shapes(site) for site in sites(network)) else 2


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
        if counts.macs * _wanted(network) <= _MOST_MACS and counts.parameters <= _MOST_PARAMETERS:
            break
    return possible[-1] if possible[-1] != network.input else None
