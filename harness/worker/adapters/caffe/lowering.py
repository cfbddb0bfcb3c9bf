"""Turn the network vocabulary into the layers of a Caffe net.

What Caffe does in its own way, and what is written for it:

- Pools round up. Where the vocabulary rounds down, the windows that are too many are cut off the
  pool's output by a ``Crop``, which is exact: the windows that stay are the same ones. It costs
  them, and a copy of the small output.
- Pads are the same on both sides. An uneven pad of a convolution becomes an even one so much larger
  that its windows fall on the wanted ones, and a Crop. A max-pool ignores its pads, so the pad
  before is enough where rounding up gives the windows at the end; else the layer is unsupported.
- Pools and crops have height and width: a line is lowered as a picture one cell high; volumes are
  unsupported.
- Batch norm is two layers, BatchNorm and Scale. Its normalisation is the vocabulary's. Its running
  statistics are not: they are averages over all steps so far, weighted by (1 - momentum) and
  divided by the sum of weights, so that they never hold the starting values 0 and 1. The variance
  is Bessel-corrected. Training does not read them.
- LRN divides alpha by its size, so alpha is multiplied by it.
- What a layer overwrites in place is what its predecessor does not need again in backward.
- Dense layers and convolutions start as everywhere: ``msra`` by fan-out is Kaiming-normal.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence, Tuple

from harness.worker.adapters.caffe.blobs import convolved, pooled
from harness.worker.adapters.caffe.prototxt import Message, Word
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

WEIGHT = [("lr_mult", 1), ("decay_mult", 1)]
PLAIN = [("lr_mult", 1), ("decay_mult", 0)]
FIXED = [("lr_mult", 0), ("decay_mult", 0)]
# Their backward does not read their output, or reads a copy or only its sign.
OVERWRITABLE = (Conv, Dense, BatchNorm, MaxPool, AveragePool, Residual, ReLU, LeakyReLU)


class Lowering:
    """A net as it grows; ``of_sum`` are fields of each of its sums (``engines.py``)."""

    def __init__(self, network: Network, of_sum: Sequence[Tuple[str, Any]] = ()) -> None:
        spatial = len(network.input) - 1
        if spatial > 2:
            raise Unsupported("Caffe pools pictures only; this network has volumes")
        self.is_line = spatial == 1
        self._of_sum = of_sum
        self.sites = {site.path: site for site in sites(network)}
        self.layers: List[Message] = []
        self.tops: Dict[str, str] = {}
        """The layer that gives each path its final value."""
        self._is_free = False
        """Whether the layer that comes may overwrite its input."""

    def add(self, name: str, kind: str, bottoms: Sequence[str], top: str, *more: Any) -> str:
        """Append a layer; give its top."""
        layer: Message = [("name", name), ("type", kind)]
        layer += [("bottom", bottom) for bottom in bottoms]
        layer += [("top", top), *more]
        self.layers.append(layer)
        return top

    def row(self, layers: Sequence[Layer], prefix: str, x: str) -> str:
        """Lower layers that follow each other; what enters may be read by others too."""
        self._is_free = False
        for layer in layers:
            path = prefix + layer.name
            count = len(self.layers)
            if isinstance(layer, Residual):
                body = self.row(layer.body, path + "/", x)
                side = self.row(layer.shortcut, path + "/", x)
                own = [*self._of_sum, ("eltwise_param", [("operation", Word("SUM"))])]
                x = self.add(path, "Eltwise", [body, side], path, *own)
            elif isinstance(layer, (Product, Heads)):
                word = type(layer).__name__
                raise Unsupported("caffe adapter: no lowering of {} ('{}')".format(word, path))
            else:
                x = lowering_of(LAYERS, type(layer), "caffe", path)(self, self.sites[path], x)
            if len(self.layers) > count:
                self.tops[path] = self.layers[-1][0][1]
            self._is_free = isinstance(layer, OVERWRITABLE)
        return x

    def target(self, path: str, x: str) -> str:
        """Choose the blob that an element-wise layer writes: its input's, where nobody minds."""
        return x if self._is_free else path

    def crop(self, site: Site, x: str, offset: int) -> str:
        """Cut an output to the windows that the vocabulary counts."""
        rows, columns = self.size(site.output)
        name = site.path + "/windows"
        shape: Message = [("dim", 1), ("dim", 1), ("dim", rows), ("dim", columns)]
        constant: Message = [("type", "constant"), ("value", 0)]
        own: Message = [("data_filler", constant), ("shape", shape)]
        self.add(name, "DummyData", [], name, ("dummy_data_param", own))
        offsets = [("offset", 0 if self.is_line else offset), ("offset", offset)]
        return self.add(
            site.path + "/crop",
            "Crop",
            [x, name],
            site.path,
            ("crop_param", [("axis", 2), *offsets]),
        )

    def size(self, shape: Sequence[int]) -> Tuple[int, int]:
        """Give height and width of an activation."""
        return (1, shape[1]) if self.is_line else (shape[1], shape[2])

    def pair(self, name: str, size: int, plain: int) -> Message:
        """State a size for height and width; a line is ``plain`` high."""
        if not self.is_line:
            return [("kernel_size" if name == "kernel" else name, size)]
        return [(name + "_h", plain), (name + "_w", size)]


def _conv(net: Lowering, site: Site, x: str) -> str:
    layer: Any = site.layer
    before, after = layer.pad
    pad = max(before, after)
    pad += (before - pad) % layer.stride  # so that windows start where the vocabulary's do
    own: Message = [("num_output", layer.channels), ("bias_term", layer.bias)]
    own += net.pair("kernel", layer.kernel, 1)
    own += net.pair("stride", layer.stride, 1) + net.pair("pad", pad, 0)
    own += [("group", layer.groups)]
    own += [("weight_filler", [("type", "msra"), ("variance_norm", Word("FAN_OUT"))])]
    params = [("param", WEIGHT)]
    if layer.bias:
        own += [("bias_filler", [("type", "constant"), ("value", 0)])]
        params += [("param", PLAIN)]
    made = [convolved(size, layer.kernel, layer.stride, pad) for size in site.input[1:]]
    is_exact = tuple(made) == tuple(site.output[1:])
    top = site.path if is_exact else site.path + "/wide"
    x = net.add(site.path, "Convolution", [x], top, *params, ("convolution_param", own))
    return x if is_exact else net.crop(site, x, (pad - before) // layer.stride)


def _pool(method: str) -> Callable[[Lowering, Site, str], str]:
    def make(net: Lowering, site: Site, x: str) -> str:
        layer: Any = site.layer
        pad = layer.pad[0] if isinstance(layer, MaxPool) else 0
        made = [pooled(size, layer.kernel, layer.stride, pad) for size in site.input[1:]]
        if any(count < wanted for count, wanted in zip(made, site.output[1:])):
            raise Unsupported(
                "layer '{}': Caffe pads pools on both sides alike, and {} leaves windows "
                "at the end that it does not have".format(site.path, layer.pad)
            )
        own: Message = [("pool", Word(method))]
        own += net.pair("kernel", layer.kernel, 1)
        own += net.pair("stride", layer.stride, 1) + net.pair("pad", pad, 0)
        is_exact = tuple(made) == tuple(site.output[1:])
        top = site.path if is_exact else site.path + "/wide"
        x = net.add(site.path, "Pooling", [x], top, ("pooling_param", own))
        return x if is_exact else net.crop(site, x, 0)

    return make


def _dense(net: Lowering, site: Site, x: str) -> str:
    layer: Any = site.layer
    own: Message = [("num_output", layer.features), ("bias_term", layer.bias)]
    own += [("weight_filler", [("type", "gaussian"), ("std", 0.01)])]
    params = [("param", WEIGHT)]
    if layer.bias:
        own += [("bias_filler", [("type", "constant"), ("value", 0)])]
        params += [("param", PLAIN)]
    path = site.path
    return net.add(path, "InnerProduct", [x], path, *params, ("inner_product_param", own))


def _norm(net: Lowering, site: Site, x: str) -> str:
    layer: Any = site.layer
    own: Message = [("moving_average_fraction", 1 - layer.momentum), ("eps", layer.epsilon)]
    top = net.target(site.path, x)
    params = [("param", FIXED)] * 3
    x = net.add(site.path, "BatchNorm", [x], top, *params, ("batch_norm_param", own))
    one: Message = [("type", "constant"), ("value", 1)]
    zero: Message = [("type", "constant"), ("value", 0)]
    scale: Message = [("filler", one), ("bias_term", True), ("bias_filler", zero)]
    params = [("param", PLAIN)] * 2
    return net.add(site.path + "/scale", "Scale", [x], x, *params, ("scale_param", scale))


def _elementwise(
    kind: str, parameters: Callable[[Any], Message], in_place: bool = False
) -> Callable[[Lowering, Site, str], str]:
    def make(net: Lowering, site: Site, x: str) -> str:
        top = net.target(site.path, x) if in_place else site.path
        own = parameters(site)
        name = {"ReLU": "relu", "Power": "power", "LRN": "lrn"}.get(kind, kind.lower())
        more = [(name + "_param", own)] if own else []
        return net.add(site.path, kind, [x], top, *more)

    return make


def _lrn(site: Any) -> Message:
    layer = site.layer
    return [
        ("local_size", layer.size),
        ("alpha", layer.alpha * layer.size),
        ("beta", layer.beta),
        ("k", layer.k),
    ]


def _dropout(net: Lowering, site: Site, x: str) -> str:
    layer: Any = site.layer
    if layer.rate == 0:  # which Caffe refuses
        return x
    own: Message = [("dropout_ratio", layer.rate)]
    return net.add(site.path, "Dropout", [x], net.target(site.path, x), ("dropout_param", own))


def _global_average(net: Lowering, site: Site, x: str) -> str:
    own: Message = [("pool", Word("AVE")), ("global_pooling", True)]
    x = net.add(site.path, "Pooling", [x], site.path + "/picture", ("pooling_param", own))
    return net.add(site.path + "/flat", "Flatten", [x], site.path)


LAYERS: Dict[type, Callable[[Lowering, Any, str], str]] = {
    Conv: _conv,
    Dense: _dense,
    BatchNorm: _norm,
    ReLU: _elementwise("ReLU", lambda site: [], in_place=True),
    LeakyReLU: _elementwise(
        "ReLU", lambda site: [("negative_slope", site.layer.slope)], in_place=True
    ),
    Tanh: _elementwise("TanH", lambda site: []),
    Scale: _elementwise("Power", lambda site: [("scale", site.layer.factor)]),
    LRN: _elementwise("LRN", _lrn),
    MaxPool: _pool("MAX"),
    AveragePool: _pool("AVE"),
    GlobalAverage: _global_average,
    Flatten: _elementwise("Flatten", lambda site: []),
    Dropout: _dropout,
    **holes(SEQUENCE_WORDS, "Caffe has no layer for sequences of vectors"),
}
