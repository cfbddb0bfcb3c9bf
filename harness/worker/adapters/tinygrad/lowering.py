"""Turn the network vocabulary into tinygrad tensors.

What an expert does here, and why:

- tinygrad has one layout, channels first; its scheduler fuses what follows an operation into it, so
  nothing is done in place or fused by hand.
- Batch norm is ``Tensor.batchnorm`` with the statistics that ``nn.BatchNorm`` takes; the class
  itself keeps them in fp32, which would hide its errors from a gate in float64.
- Pools are padded explicitly to the windows that the vocabulary counts, so rounding is not left to
  ``ceil_mode``. Where several values of a window are the largest, tinygrad shares the gradient out
  among them; the others give it to the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

from tinygrad import Context

from harness.worker.adapters.tinygrad.sequences import SEQUENCE_LAYERS
from harness.worker.attribution.marks import Mark, unmarked
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
from harness.worker.network.shapes import Site, sites
from harness.worker.network.words import lowering_of

Tensors = Dict[str, Any]


@dataclass
class Pass:
    """One run through the network: what is read, and what the layers leave behind."""

    parameters: Mapping[str, Any]
    statistics: Mapping[str, Any]
    drops: bool
    updated: Tensors
    kept: Optional[Tensors] = None
    """Every layer's output by path, where asked for."""


class Lowered:
    """A network as tinygrad runs it."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.sites = {site.path: site for site in sites(network)}
        self.mark: Mark = unmarked
        for site in self.sites.values():
            if not isinstance(site.layer, (Residual, Product, Heads)):
                lowering_of(LAYERS, type(site.layer), "tinygrad", site.path)

    def run(self, x: Any, one: Pass) -> Any:
        """Run a batch through the network."""
        return self._row(self.network.layers, "", x, one)

    def layer(self, path: str, x: Any, one: Pass) -> Any:
        """Run one layer alone."""
        site = self.sites[path]
        return LAYERS[type(site.layer)](site, x, one)

    def _row(self, layers: Sequence[Layer], prefix: str, x: Any, one: Pass) -> Any:
        for layer in layers:
            path = prefix + layer.name
            with self.mark(path):
                if isinstance(layer, Residual):
                    body = self._row(layer.body, path + "/", x, one)
                    x = body + self._row(layer.shortcut, path + "/", x, one)
                elif isinstance(layer, Product):
                    body = self._row(layer.body, path + "/", x, one)
                    x = body * self._row(layer.gate, path + "/", x, one)
                elif isinstance(layer, Heads):
                    first = self._row(layer.positions, path + "/", x, one)
                    return first, self._row(layer.sample, path + "/", x, one)
                else:
                    x = self.layer(path, x, one)
            if one.kept is not None:
                one.kept[path] = x
        return x


def _conv(site: Site, x: Any, one: Pass) -> Any:
    layer: Any = site.layer
    bias = one.parameters[site.path + "/bias"] if layer.bias else None
    pads = layer.pad * (x.ndim - 2)
    return x.conv2d(
        one.parameters[site.path + "/weight"], bias, layer.groups, layer.stride, padding=pads
    )


def _dense(site: Site, x: Any, one: Pass) -> Any:
    layer: Any = site.layer
    bias = one.parameters[site.path + "/bias"] if layer.bias else None
    return x.linear(one.parameters[site.path + "/weight"].transpose(), bias)


def _norm(site: Site, x: Any, one: Pass) -> Any:
    layer: Any = site.layer
    path = site.path
    axes = (0, *range(2, x.ndim))
    mean = x.mean(axes)
    centred = x - mean.detach().reshape(1, -1, *(1,) * (x.ndim - 2))
    variance = centred.square().mean(axes)  # its slope by the mean is zero
    count = x.numel() // x.shape[1]
    for kind, batch in (("mean", mean), ("variance", variance * (count / (count - 1)))):
        name = "{}/{}".format(path, kind)
        one.updated[name] = (1 - layer.momentum) * one.statistics[
            name
        ] + layer.momentum * batch.detach()
    inverse = (variance + layer.epsilon).rsqrt()
    return x.batchnorm(
        one.parameters[path + "/gamma"], one.parameters[path + "/beta"], mean, inverse
    )


def _max_pool(site: Site, x: Any, one: Pass) -> Any:
    layer: Any = site.layer
    kernel = (layer.kernel,) * (x.ndim - 2)
    return x.max_pool2d(kernel, layer.stride, padding=_pads(site, layer.pad[0]))


def _average_pool(site: Site, x: Any, one: Pass) -> Any:
    layer: Any = site.layer
    return x.avg_pool2d((layer.kernel,) * (x.ndim - 2), layer.stride)


def _pads(site: Site, before: int) -> Tuple[int, ...]:
    """Pad so that exactly the windows the shapes promise exist; the last dimension comes first."""
    layer: Any = site.layer
    pads = [
        (before, max(0, (count - 1) * layer.stride + layer.kernel - before - size))
        for size, count in zip(site.input[1:], site.output[1:])
    ]
    return tuple(side for pair in reversed(pads) for side in pair)


def _lrn(site: Site, x: Any, one: Pass) -> Any:
    layer: Any = site.layer
    half = layer.size // 2
    squares = x.square().pad((None, (half, half), *(None,) * (x.ndim - 2)))
    total = sum(squares[:, start : start + x.shape[1]] for start in range(layer.size))
    return x * (layer.k + layer.alpha * total) ** -layer.beta


def _dropout(site: Site, x: Any, one: Pass) -> Any:
    layer: Any = site.layer
    if not one.drops:
        return x
    with Context(TRAINING=1):
        return x.dropout(layer.rate)


LAYERS: Dict[type, Callable[[Any, Any, Pass], Any]] = {
    Conv: _conv,
    Dense: _dense,
    BatchNorm: _norm,
    ReLU: lambda site, x, one: x.relu(),
    LeakyReLU: lambda site, x, one: x.leaky_relu(site.layer.slope),
    Tanh: lambda site, x, one: x.tanh(),
    Scale: lambda site, x, one: x * site.layer.factor,
    LRN: _lrn,
    MaxPool: _max_pool,
    AveragePool: _average_pool,
    GlobalAverage: lambda site, x, one: x.mean(tuple(range(2, x.ndim))),
    Flatten: lambda site, x, one: x.flatten(1),
    Dropout: _dropout,
    **SEQUENCE_LAYERS,
}
