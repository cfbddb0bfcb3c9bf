"""Turn the network vocabulary into torch modules as an expert would write them.

What an expert does here, and why:

- ReLUs, LeakyReLUs and residual sums work in place wherever the layer before keeps its output out
  of the backward pass: less memory traffic, which is what bounds these layers.
- The symmetric part of a pad is folded into the operator, which pads for free; only the rest is an
  explicit pad, which copies.
- Batch norms do not count batches: that counter serves ``momentum=None`` only and costs a kernel a
  layer a step.
- LRN is ours, forward and backward (``lrn.py``); torch's own is 7 times slower on a CPU.
- Parameters are made without torch's own initialisation, which would be overwritten.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

import torch
from torch import nn
from torch.nn import functional

from harness.worker.adapters.torch.lowering import sequences
from harness.worker.adapters.torch.lowering.lrn import LocalResponseNorm
from harness.worker.adapters.torch.lowering.recomputed import Block
from harness.worker.adapters.torch.lowering.sequences import SEQUENCE_LAYERS
from harness.worker.network.blocks import parts
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
    Layer,
    LeakyReLU,
    MaxPool,
    Network,
    Product,
    ReLU,
    Residual,
    Scale,
    Tanh,
)
from harness.worker.network.rule import SequenceShape
from harness.worker.network.sequence_layers import TiedDense
from harness.worker.network.shapes import Site, sites
from harness.worker.network.words import lowering_of

CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
MAX_POOLS = {1: nn.MaxPool1d, 2: nn.MaxPool2d, 3: nn.MaxPool3d}
AVERAGE_POOLS = {1: nn.AvgPool1d, 2: nn.AvgPool2d, 3: nn.AvgPool3d}
NORMS = {0: nn.BatchNorm1d, 1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}

# Their backward pass does not look at their output, so the next layer may overwrite it.
OUTPUT_UNUSED = (Conv, Dense, BatchNorm, MaxPool, AveragePool, GlobalAverage, Residual, LRN, Scale)
SUM_IN_PLACE = (Conv, Dense, BatchNorm)


class Lowered(nn.Module):
    """A network as modules in a row; ``at`` finds each of them by its path.

    If it ``recomputes``, those of a block stand in a row of their own.
    """

    def __init__(self, network: Network, *, recomputes: bool = False) -> None:
        super().__init__()
        self.at: Dict[str, nn.Module] = {}
        self.sites = {site.path: site for site in sites(network)}
        with torch.device("meta"):
            row = _row(network.layers, "", self.sites, self.at)
        self.layers = _in_blocks(row, network) if recomputes else row
        self.to_empty(device="cpu")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run a batch through the network."""
        return self.layers(x)


class Sum(nn.Module):
    """Add what the body and the shortcut make of the same input."""

    def __init__(self, body: nn.Module, shortcut: nn.Module, is_in_place: bool) -> None:
        super().__init__()
        self.body = body
        self.shortcut = shortcut
        self.is_in_place = is_in_place

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute both branches and add them."""
        y = self.body(x)
        if self.is_in_place:
            y += self.shortcut(x)
            return y
        return y + self.shortcut(x)


class Pad(nn.Module):
    """Pad every spatial dimension with a constant."""

    def __init__(self, pad: Tuple[int, int], dimensions: int, value: float) -> None:
        super().__init__()
        self.pads = pad * dimensions
        self.value = value

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Copy the batch into a larger, padded one."""
        return functional.pad(x, self.pads, value=self.value)


class MeanOverPositions(nn.Module):
    """Average each channel over all positions."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Reduce the spatial dimensions away."""
        return x.mean(dim=tuple(range(2, x.dim())))


class Multiply(nn.Module):
    """Multiply by a constant."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scale every item."""
        return x * self.factor


def _in_blocks(row: nn.Sequential, network: Network) -> nn.Sequential:
    modules = iter(row)
    blocks = nn.Sequential()
    for part in parts(network):
        inner = [next(modules) for _ in part.layers]
        blocks.extend([Block(*inner)] if part.is_block else inner)
    return blocks


def operator(module: nn.Module) -> nn.Module:
    """Give the module that holds a layer's parameters, behind an explicit pad if there is one."""
    return module[-1] if isinstance(module, nn.Sequential) else module


def _row(
    layers: Sequence[Layer], prefix: str, found: Mapping[str, Site], at: Dict[str, nn.Module]
) -> nn.Sequential:
    row = nn.Sequential()
    before: List[Layer] = []
    for layer in layers:
        path = prefix + layer.name
        if isinstance(layer, Residual):
            module: nn.Module = Sum(
                _row(layer.body, path + "/", found, at),
                _row(layer.shortcut, path + "/", found, at),
                _may_add_in_place(layer, found[path]),
            )
        elif isinstance(layer, Product):
            module = sequences.Times(
                _row(layer.body, path + "/", found, at), _row(layer.gate, path + "/", found, at)
            )
        elif isinstance(layer, Heads):
            module = sequences.Both(
                _row(layer.positions, path + "/", found, at),
                _row(layer.sample, path + "/", found, at),
            )
        elif isinstance(layer, TiedDense):
            module = sequences.Tied(at[layer.to], layer.features, layer.bias)
        else:
            module = _module(layer, found[path], _may_overwrite(before))
        row.add_module(layer.name, module)
        at[path] = module
        before.append(layer)
    return row


def _may_overwrite(before: Sequence[Layer]) -> bool:
    """Say whether the next layer may work in place; a row's first input belongs to others too."""
    behind = [layer for layer in before if not isinstance(layer, Flatten)]
    return bool(behind) and isinstance(behind[-1], OUTPUT_UNUSED)


def _may_add_in_place(layer: Residual, site: Site) -> bool:
    """Say whether a sum may be written over its body's output; of a sequence it may be narrower."""
    is_sequence = isinstance(site.output, SequenceShape)
    return isinstance(layer.body[-1], SUM_IN_PLACE) and not is_sequence


def _module(layer: Layer, site: Site, in_place: bool) -> nn.Module:
    return lowering_of(LAYERS, type(layer), "torch", site.path)(layer, site, in_place)


def _conv(layer: Conv, site: Site, _: bool) -> nn.Module:
    dimensions = len(site.input) - 1
    folded, rest = _split(layer.pad)
    convolution = CONVOLUTIONS[dimensions](
        site.input[0],
        layer.channels,
        layer.kernel,
        stride=layer.stride,
        padding=folded,
        groups=layer.groups,
        bias=layer.bias,
    )
    return _padded(convolution, rest, dimensions, 0.0)


def _max_pool(layer: MaxPool, site: Site, _: bool) -> nn.Module:
    dimensions = len(site.input) - 1
    folded, rest = _split(layer.pad)
    # torch pads a pool by half its kernel at most; a copy that holds minus infinity does the rest.
    extra = max(0, folded - layer.kernel // 2)
    pool = MAX_POOLS[dimensions](
        layer.kernel, layer.stride, padding=folded - extra, ceil_mode=layer.ceil
    )
    return _padded(pool, (rest[0] + extra, rest[1] + extra), dimensions, float("-inf"))


def _split(pad: Tuple[int, int]) -> Tuple[int, Tuple[int, int]]:
    folded = min(pad)
    return folded, (pad[0] - folded, pad[1] - folded)


def _padded(module: nn.Module, pad: Tuple[int, int], dimensions: int, value: float) -> nn.Module:
    return nn.Sequential(Pad(pad, dimensions, value), module) if any(pad) else module


def _norm(layer: BatchNorm, site: Site, _: bool) -> nn.Module:
    norm = NORMS[len(site.input) - 1](site.input[0], eps=layer.epsilon, momentum=layer.momentum)
    norm.num_batches_tracked = None
    return norm


def _tied_dense(layer: TiedDense, site: Site, _: bool) -> nn.Module:
    raise ValueError("'{}' is lowered with the table that it is tied to".format(site.path))


LAYERS: Dict[type, Callable[[Any, Site, bool], nn.Module]] = {
    Conv: _conv,
    Dense: lambda layer, site, _: nn.Linear(site.input[-1], layer.features, bias=layer.bias),
    BatchNorm: _norm,
    ReLU: lambda _, __, in_place: nn.ReLU(inplace=in_place),
    LeakyReLU: lambda layer, _, in_place: nn.LeakyReLU(layer.slope, inplace=in_place),
    Tanh: lambda *_: nn.Tanh(),
    Scale: lambda layer, *_: Multiply(layer.factor),
    LRN: lambda layer, *_: LocalResponseNorm(layer.size, layer.alpha, layer.beta, layer.k),
    MaxPool: _max_pool,
    AveragePool: lambda layer, site, _: AVERAGE_POOLS[len(site.input) - 1](
        layer.kernel, layer.stride
    ),
    GlobalAverage: lambda *_: MeanOverPositions(),
    Flatten: lambda *_: nn.Flatten(),
    Dropout: lambda layer, *_: nn.Dropout(layer.rate),
    TiedDense: _tied_dense,
    **SEQUENCE_LAYERS,
}
