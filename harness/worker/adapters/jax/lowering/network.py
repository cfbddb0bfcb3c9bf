"""Turn the network vocabulary into one pure function of ``jax.lax`` operations.

What an expert does here, and why:

- Weights lie as Eigen and cuDNN want them: (spatial …, in, out) for channels-last, (out, in,
  spatial …) for channels-first; dense weights (in, out). Canonical ones are converted once.
- Pads are part of the operation: XLA fuses them, and its max-pool pads with minus infinity.
- Before a channels-last ``Flatten`` the sample is turned channels first, so that dense weights are
  the canonical ones: a copy of one small activation, which XLA merges with the reshape.
- Batch statistics are taken, and biases added, in fp32 whatever activations are: sums lose digits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import jax
import numpy
from jax import lax
from jax import numpy as jnp

from harness.worker.adapters.jax.lowering.convolutions import convolved
from harness.worker.adapters.jax.lowering.sequences import SEQUENCE_LAYERS, add
from harness.worker.adapters.jax.settings import Settings
from harness.worker.attribution.marks import unmarked
from harness.worker.network.blocks import Part, parts
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
from harness.worker.network.rule import SequenceShape, Shape
from harness.worker.network.shapes import sites
from harness.worker.network.words import lowering_of

Arrays = Dict[str, Any]


@dataclass
class Pass:
    """One run through the network: what is read, and what the layers leave behind."""

    parameters: Mapping[str, Any]
    statistics: Mapping[str, Any]
    key: Optional[Any]
    """Where dropouts draw from; None: they are off."""
    updated: Arrays
    kept: Optional[Arrays]
    """Every layer's output by path, where asked for."""
    compute: Any = jnp.float32
    """What tables of numbers are read as; everything else is computed in what enters it."""


class Lowered:
    """A network in one layout; if it ``recomputes``, gradients keep what enters blocks alone."""

    def __init__(
        self, network: Network, channels_last: bool, is_cpu: bool, *, recomputes: bool = False
    ) -> None:
        self._parts = parts(network) if recomputes else [Part(network.layers, False)]
        self.channels_last = channels_last
        self.is_cpu = is_cpu
        self.sites = {site.path: site for site in sites(network)}
        self.mark = unmarked

    def run(self, x: Any, one: Pass) -> Any:
        """Run a batch through the network."""
        for part in self._parts:
            run = self._recomputed if part.is_block else self._row
            x = run(part.layers, "", x, one)
        return x

    def layer(self, path: str, x: Any, one: Pass) -> Any:
        """Run one layer alone."""
        return self._layer(self.sites[path], x, one)

    def _recomputed(self, layers: Sequence[Layer], prefix: str, x: Any, one: Pass) -> Any:
        """Run a row whose gradients compute it again; what it leaves behind, it gives as well."""

        def run(x: Any, key: Any) -> Tuple[Any, Any]:
            kept: Optional[Arrays] = None if one.kept is None else {}
            own = replace(one, key=key, updated={}, kept=kept)
            y = self._row(layers, prefix, x, own)
            return y, (own.key, own.updated, own.kept)

        y, (one.key, updated, kept) = jax.checkpoint(run)(x, one.key)
        one.updated.update(updated)
        if one.kept is not None:
            one.kept.update(kept)
        return y

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
                    x = self._layer(self.sites[path], x, one)
            if one.kept is not None:
                one.kept[path] = x
        return x

    def _layer(self, site: Any, x: Any, one: Pass) -> Any:
        return lowering_of(LAYERS, type(site.layer), "jax", site.path)(self, site, x, one)

    def activation_in(self, x: Any, shape: Shape = ()) -> Any:
        """Bring a canonical activation into this layout; one of a sequence's shape stays."""
        return _moved(x, (1,), (-1,)) if self._is_moved(x, shape) else x

    def activation_out(self, x: Any, shape: Shape = ()) -> Any:
        """Bring an activation back into the canonical layout."""
        return _moved(x, (-1,), (1,)) if self._is_moved(x, shape) else x

    def _is_moved(self, x: Any, shape: Shape) -> bool:
        return self.channels_last and x.ndim > 2 and not isinstance(shape, SequenceShape)

    def weight_in(self, name: str, weight: Any) -> Any:
        """Bring a canonical parameter or statistic into this layout."""
        path, kind = name.rsplit("/", 1)
        if kind == "weight" and isinstance(self.sites[path].layer, Dense):
            return weight.T
        if kind == "weight" and self.channels_last and isinstance(self.sites[path].layer, Conv):
            return _moved(weight, (0, 1), (-1, -2))
        return weight

    def weight_out(self, name: str, weight: Any) -> Any:
        """Bring a parameter or statistic back into the canonical layout."""
        path, kind = name.rsplit("/", 1)
        if kind == "weight" and isinstance(self.sites[path].layer, Dense):
            return weight.T
        if kind == "weight" and self.channels_last and isinstance(self.sites[path].layer, Conv):
            return _moved(weight, (-1, -2), (0, 1))
        return weight

    def channel(self, vector: Any, x: Any) -> Any:
        """Shape a vector of one number a channel so that it meets an activation."""
        if self.channels_last or x.ndim == 2:
            return vector
        return vector.reshape(-1, *(1,) * (x.ndim - 2))

    def positions(self, x: Any) -> Tuple[int, ...]:
        """Name the spatial axes of an activation."""
        return tuple(range(1, x.ndim - 1) if self.channels_last else range(2, x.ndim))

    def over_windows(
        self, x: Any, start: Any, function: Any, kernel: int, stride: int, pads: List[Any]
    ) -> Any:
        """Reduce windows over the spatial dimensions."""
        window, strides, padding = [1] * x.ndim, [1] * x.ndim, [(0, 0)] * x.ndim
        for axis, pad in zip(self.positions(x), pads):
            window[axis], strides[axis], padding[axis] = kernel, stride, pad
        start = numpy.asarray(start, x.dtype)[()]
        return lax.reduce_window(x, start, function, tuple(window), tuple(strides), tuple(padding))


def lowered(network: Network, settings: Settings) -> Lowered:
    """Lower a network as the factors came to."""
    return Lowered(
        network, settings.channels_last, not settings.is_gpu, recomputes=settings.recomputes
    )


def _moved(x: Any, before: Tuple[int, ...], after: Tuple[int, ...]) -> Any:
    """Move axes; of an array of numpy's without compiling a program for each shape."""
    return (numpy if isinstance(x, numpy.ndarray) else jnp).moveaxis(x, before, after)


def _conv(net: Lowered, site: Any, x: Any, one: Pass) -> Any:
    layer = site.layer
    weight = one.parameters[site.path + "/weight"].astype(x.dtype)
    y = convolved(net, layer, x, weight)
    if layer.bias:
        y = add(y, net.channel(one.parameters[site.path + "/bias"], y))
    return y


def _dense(net: Lowered, site: Any, x: Any, one: Pass) -> Any:
    y = x @ one.parameters[site.path + "/weight"].astype(x.dtype)
    if site.layer.bias:
        y = add(y, one.parameters[site.path + "/bias"])
    return y


def _norm(net: Lowered, site: Any, x: Any, one: Pass) -> Any:
    layer, path = site.layer, site.path
    wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    axes = (0, *net.positions(x)) if x.ndim > 2 else (0,)
    mean = jnp.mean(wide, axes)
    centred = wide - net.channel(mean, wide)
    variance = jnp.mean(lax.square(centred), axes)
    count = x.size // x.shape[-1 if net.channels_last or x.ndim == 2 else 1]
    unbiased = variance * (count / (count - 1))
    for kind, batch in (("mean", mean), ("variance", unbiased)):
        name = "{}/{}".format(path, kind)
        one.updated[name] = (1 - layer.momentum) * one.statistics[name] + layer.momentum * batch
    scale = lax.rsqrt(variance + layer.epsilon) * one.parameters[path + "/gamma"]
    y = centred * net.channel(scale, wide)
    return (y + net.channel(one.parameters[path + "/beta"], wide)).astype(x.dtype)


def _max_pool(net: Lowered, site: Any, x: Any, one: Pass) -> Any:
    layer = site.layer
    pads = _pads(site, layer.pad[0])
    return net.over_windows(x, -jnp.inf, lax.max, layer.kernel, layer.stride, pads)


def _average_pool(net: Lowered, site: Any, x: Any, one: Pass) -> Any:
    layer = site.layer
    total = net.over_windows(x, 0, lax.add, layer.kernel, layer.stride, _pads(site, 0))
    return total / layer.kernel ** (x.ndim - 2)


def _pads(site: Any, before: int) -> List[Tuple[int, int]]:
    """Pad so that exactly the windows the shapes promise exist, whichever way pooling rounds."""
    layer = site.layer
    return [
        (before, max(0, (count - 1) * layer.stride + layer.kernel - before - size))
        for size, count in zip(site.input[1:], site.output[1:])
    ]


def _lrn(net: Lowered, site: Any, x: Any, one: Pass) -> Any:
    layer = site.layer
    wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    axis = wide.ndim - 1 if net.channels_last else 1
    window = [1] * wide.ndim
    window[axis] = layer.size
    pads = [(0, 0)] * wide.ndim
    pads[axis] = (layer.size // 2, layer.size // 2)
    zero = numpy.zeros((), wide.dtype)[()]
    total = lax.reduce_window(
        lax.square(wide), zero, lax.add, tuple(window), (1,) * wide.ndim, tuple(pads)
    )
    return (wide * (layer.k + layer.alpha * total) ** -layer.beta).astype(x.dtype)


def _flatten(net: Lowered, site: Any, x: Any, one: Pass) -> Any:
    return net.activation_out(x).reshape(x.shape[0], -1)


def _dropout(net: Lowered, site: Any, x: Any, one: Pass) -> Any:
    if one.key is None or site.layer.rate == 0:
        return x
    one.key, key = jax.random.split(one.key)
    stays = jax.random.bernoulli(key, 1 - site.layer.rate, x.shape)
    return jnp.where(stays, x / (1 - site.layer.rate), jnp.zeros_like(x))


LAYERS: Dict[type, Callable[[Lowered, Any, Any, Pass], Any]] = {
    Conv: _conv,
    Dense: _dense,
    BatchNorm: _norm,
    ReLU: lambda net, site, x, one: jax.nn.relu(x),
    LeakyReLU: lambda net, site, x, one: jnp.where(x > 0, x, x * site.layer.slope),
    Tanh: lambda net, site, x, one: jnp.tanh(x),
    Scale: lambda net, site, x, one: x * site.layer.factor,
    LRN: _lrn,
    MaxPool: _max_pool,
    AveragePool: _average_pool,
    GlobalAverage: lambda net, site, x, one: jnp.mean(x, net.positions(x)),
    Flatten: _flatten,
    Dropout: _dropout,
    **SEQUENCE_LAYERS,
}
