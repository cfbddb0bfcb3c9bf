"""Turn the network vocabulary into SINGA's layers, where SINGA has them and they hold.

What its sources (5.0, ``python/singa``, ``src/model/operation``) decide here:

- Every layer is an attribute of the model under a name of its own. Layers that are not registered
  share the name of their parameters, and with it their momentum buffers.
- ``BatchNorm2d``'s momentum is the share of the new batch, as here (its default is 0.9); epsilon is
  1e-5 in the code; the running variance is Bessel-corrected.
- ``Dropout`` scales by 1 - rate, because its source says ``1 / 1 - self.ratio``, and seeds the
  device's generator in every step, so that each step drops the same. Both are mended in a subclass.
- Uneven pads: a convolution's are zeros, as they should be. A pool's repeat the border and lose
  the gradient that falls on them, so they are unsupported, and so is rounding up that needs them.
- On a CPU there are no groups. There is no LRN and nothing for volumes. A line is a picture one
  cell high.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence, Tuple

from singa import autograd, layer, tensor

from harness.worker.contracts import Unsupported
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
from harness.worker.network.sequence_layers import SEQUENCE_WORDS
from harness.worker.network.shapes import Site, sites
from harness.worker.network.words import holes, lowering_of

EPSILON = 1e-5


class ScaledDropout(autograd.Dropout):
    """SINGA's dropout with the scale and the draws it should have."""

    def __init__(self, rate: float) -> None:
        super().__init__(ratio=rate)
        self.init_seed = True  # or forward would seed the device again

    @property
    def scale(self) -> float:
        """Make up for what is dropped."""
        return float(1 / (1 - self.ratio))

    @scale.setter
    def scale(self, value: float) -> None:
        """Ignore what ``forward`` thinks it is."""


class Lowered:
    """A network as SINGA runs it: what has to be registered, and how each layer is called."""

    def __init__(self, network: Network, on_cpu: bool) -> None:
        self.network = network
        spatial = len(network.input) - 1
        if spatial > 2:
            raise Unsupported("SINGA has no layers for volumes")
        self.is_line = spatial == 1
        self.on_cpu = on_cpu
        self.sites = {site.path: site for site in sites(network)}
        self.layers: Dict[str, Any] = {}
        """By the name to register them under."""
        self._calls: Dict[str, Callable[[Any], Any]] = {}
        for path, site in self.sites.items():
            if isinstance(site.layer, Residual):
                continue
            if isinstance(site.layer, (Product, Heads)):
                word = type(site.layer).__name__
                raise Unsupported("singa adapter: no lowering of {} ('{}')".format(word, path))
            self._calls[path] = lowering_of(LAYERS, type(site.layer), "singa", path)(self, site)

    def run(self, x: Any) -> Any:
        """Run a batch through the network."""
        return self._row(self.network.layers, "", x)

    def keep(self, site: Site, made: Any) -> Any:
        """Remember a layer that has to be registered."""
        self.layers[registered(site.path)] = made
        return made

    def pair(self, size: int, plain: int) -> Any:
        """Give a size for height and width."""
        return (plain, size) if self.is_line else (size, size)

    def _row(self, layers: Sequence[Layer], prefix: str, x: Any) -> Any:
        for one in layers:
            path = prefix + one.name
            if isinstance(one, Residual):
                body = self._row(one.body, path + "/", x)
                x = autograd.add(body, self._row(one.shortcut, path + "/", x))
            else:
                x = self._calls[path](x)
        return x


def registered(path: str) -> str:
    """Name a layer inside the model: unique, and an identifier."""
    return path.replace("/", "__")


def _conv(net: Lowered, site: Site) -> Any:
    own: Any = site.layer
    if own.groups > 1 and net.on_cpu:
        raise Unsupported("layer '{}': SINGA has no groups on a CPU".format(site.path))
    before, after = own.pad
    rows = (0, 0) if net.is_line else (before, after)
    pads = (*rows, before, after)
    made = layer.Conv2d(
        own.channels,
        net.pair(own.kernel, 1),
        stride=net.pair(own.stride, 1),
        padding=pads,
        group=own.groups,
        bias=own.bias,
    )
    return net.keep(site, made)


def _dense(net: Lowered, site: Site) -> Any:
    own: Any = site.layer
    return net.keep(site, layer.Linear(own.features, bias=own.bias))


def _norm(net: Lowered, site: Site) -> Any:
    own: Any = site.layer
    if own.epsilon != EPSILON:
        raise Unsupported("layer '{}': SINGA's epsilon is always {}".format(site.path, EPSILON))
    return net.keep(site, layer.BatchNorm2d(momentum=own.momentum))


def _pool(net: Lowered, site: Site) -> Any:
    own: Any = site.layer
    before = own.pad[0] if isinstance(own, MaxPool) else 0
    even = [(size + 2 * before - own.kernel) // own.stride + 1 for size in site.input[1:]]
    if tuple(even) != tuple(site.output[1:]):
        raise Unsupported(
            "layer '{}': SINGA repeats the border where a pool's pads are uneven".format(site.path)
        )
    kinds = {MaxPool: layer.MaxPool2d, AveragePool: layer.AvgPool2d}
    kernel, stride = net.pair(own.kernel, 1), net.pair(own.stride, 1)
    made = kinds[type(own)](kernel, stride, net.pair(before, 0))
    return net.keep(site, made)


def _lrn(_: Lowered, site: Site) -> Any:
    raise Unsupported("SINGA has no layer for '{}' (LRN)".format(site.path))


def _global_average(net: Lowered, site: Site) -> Any:
    size = (1, site.input[1]) if net.is_line else tuple(site.input[1:])
    pool = net.keep(site, layer.AvgPool2d(size, size))
    return lambda x: autograd.flatten(pool(x))


def _scale(net: Lowered, site: Site) -> Any:
    own: Any = site.layer
    made: List[Any] = []

    def call(x: Any) -> Any:
        if not made:
            factor = tensor.Tensor((1,), x.device)
            factor.set_value(own.factor)
            made.append(factor)
        return autograd.mul(x, made[0])

    return call


def _dropout(net: Lowered, site: Site) -> Any:
    rate = site.layer.rate  # type: ignore[union-attr]
    return lambda x: ScaledDropout(rate)(x)[0] if rate else x


Maker = Callable[[Lowered, Any], Callable[[Any], Any]]
LAYERS: Dict[type, Maker] = {
    Conv: _conv,
    Dense: _dense,
    BatchNorm: _norm,
    ReLU: lambda net, site: autograd.relu,
    LeakyReLU: lambda net, site: lambda x: autograd.leakyrelu(x, site.layer.slope),
    Tanh: lambda net, site: autograd.tanh,
    Scale: _scale,
    LRN: _lrn,
    MaxPool: _pool,
    AveragePool: _pool,
    GlobalAverage: _global_average,
    Flatten: lambda net, site: autograd.flatten,
    Dropout: _dropout,
    **holes(SEQUENCE_WORDS, "SINGA's autograd has no attention and no norm of each position"),
}


def input_shape(net: Lowered, batch: int) -> Tuple[int, ...]:
    """Give the shape that SINGA is fed."""
    shape = net.network.input
    return (batch, shape[0], 1, shape[1]) if net.is_line else (batch, *shape)
