"""Put a Caffe net under examination through pycaffe, layer by layer, in fp32.

The nets are those of the lowering, with three changes that examining needs: the batch enters by an
``Input`` layer instead of being drawn, ``force_backward`` asks for the gradient of the input, and
in the whole network nothing is dropped. A layer alone is a net of that layer alone. The solver is
the one that trains; what it makes of its own gradients is compared.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Sequence, Tuple

import numpy

from harness.worker.adapters.caffe.engines import Engines
from harness.worker.adapters.caffe.lowering import Lowering
from harness.worker.adapters.caffe.prototxt import Message
from harness.worker.adapters.caffe.solver import solver
from harness.worker.adapters.caffe.training_net import lower_loss
from harness.worker.contracts import Unsupported
from harness.worker.gate.subject import Made, undropped
from harness.worker.gate.tensors import Tensor
from harness.worker.network.layers import Network
from harness.worker.network.shapes import Site, parameter_shapes, sites, statistic_shapes
from harness.worker.network.workload import Training

# Where Caffe keeps what the vocabulary names: behind the layer's name, and at which place.
BLOBS = {
    "weight": ("", 0),
    "bias": ("", 1),
    "mean": ("", 0),
    "variance": ("", 1),
    "gamma": ("/scale", 0),
    "beta": ("/scale", 1),
}
FOLDED = {"gamma": 3, "beta": 4}
"""Their places where Intel's engines have folded a ``Scale`` into the ``BatchNorm`` before it."""
FACTOR = 2
"""The place of the number by which a BatchNorm's statistics are still to be divided."""


class CaffeLayerPass:
    """A net of one layer; the gradient of its output stays where a backward pass begins."""

    def __init__(self, net: Any, top: str, site: Site, slope: Any) -> None:
        self._net = net
        self._top = net.blobs[top]
        self._site = site
        self._fits = bool(self._top.data.size == slope.size)
        if self._fits:
            self._top.diff[...] = slope.reshape(self._top.diff.shape)

    def forward(self) -> None:
        """Run the forward pass."""
        self._net.forward()

    def both(self) -> None:
        """Run both passes; of a mistake, which the gate is to name, the forward one."""
        self.forward()
        if self._fits:
            self._net.backward()

    def sync(self) -> None:
        """Return at once: pycaffe returns when it is done."""

    def made(self) -> Iterator[Made]:
        """Give what both passes computed."""
        site, y = self._site, self._top
        if not self._fits:
            yield _whole("output", y.data, y.data.shape)
            return
        yield _made("output", y.data, site.output)
        yield _made("input-gradient", self._net.blobs["data"].diff, site.input)
        prefix = len(site.path) - len(site.layer.name)
        for name, shape in parameter_shapes(site):
            kind = name.rpartition("/")[2]
            yield _whole("gradient/" + kind, _blob(self._net, name[prefix:]).diff, shape)


class CaffeSubject:
    """One network under examination; ``caffe`` is pycaffe, ``write`` puts a net into a file."""

    def __init__(
        self,
        caffe: Any,
        workload: Training,
        *,
        write: Callable[[str, Message], str],
        engines: Engines,
        device: str,
        unshown: Optional[str],
    ) -> None:
        self._caffe = caffe
        self._write = write
        self._workload = workload
        self._engines = engines
        self._device = device
        self._unshown = unshown
        self._sites = {site.path: site for site in sites(workload.network)}
        self._state: Dict[str, Any] = {}
        self._whole: Any = None

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Remember every parameter and running statistic for the nets to come."""
        self._state = {name: _array(tensor) for name, tensor in state.items()}

    def reset(self) -> None:
        """Reset nothing: no weight was updated."""

    def gradients(self, given: Tensor, target: Tensor) -> Iterator[Made]:
        """Run the whole network forward and backward."""
        path, top, weight = self._written("whole", self._plain(), given.shape[0], target.shape)
        net = self._caffe.Net(path, self._caffe.TRAIN)
        self._feed(net, given, target)
        net.forward()
        net.backward()
        self._whole = net
        last = self._workload.network.layers[-1].name
        yield _made("output", net.blobs[top].data, self._sites[last].output)
        yield _whole("loss", net.blobs["loss"].data * weight, ())
        for name, shape in self._learned():
            yield _whole("gradient/" + name, _blob(net, name).diff, shape)

    def own_updates(self, given: Tensor, target: Tensor, count: int) -> Iterator[Iterator[Made]]:
        """Let the solver train: what it starts from, then of each update gradients and state."""
        path, _, _ = self._written("trained", self._plain(), given.shape[0], target.shape)
        message = solver(
            self._workload,
            net=path,
            batch_per_step=given.shape[0],
            display=0,
            device=self._device,
            seed=0,
        )
        trained = self._caffe.get_solver(self._write("solver.prototxt", message))
        net = trained.net
        self._feed(net, given, target)
        slopes: Dict[str, Any] = {}

        def keep() -> None:
            """Copy the gradients before the solver makes its update of them, in their place."""
            slopes.update((name, _blob(net, name).diff.copy()) for name, _ in self._learned())

        trained.add_callback(lambda: None, keep)
        yield self._after(net)
        for _ in range(count):
            trained.step(1)
            gradients = (
                _whole("gradient/" + name, slopes[name], shape) for name, shape in self._learned()
            )
            yield chain(gradients, self._after(net))

    def update(self, given: Tensor, target: Tensor) -> None:
        """Refuse: updates are compared in float64, which Caffe does not have."""
        raise Unsupported("Caffe computes in fp32 only")

    def state(self) -> Iterator[Made]:
        """Give every parameter and running statistic after the pass."""
        for name, shape in self._learned():
            yield _whole(name, _blob(self._whole, name).data, shape)
        for site in self._sites.values():
            if statistic_shapes(site):
                factor = float(self._whole.params[site.path][FACTOR].data.reshape(-1)[0])
                for name, shape in statistic_shapes(site):
                    value = _blob(self._whole, name).data / (factor or 1.0)
                    yield _whole(name, value, shape)

    def layer(
        self, path: str, given: Tensor, gradient: Tensor, to_input: bool = True
    ) -> CaffeLayerPass:
        """Open a net of one layer."""
        site = self._sites[path]
        alone = Network(site.input, (site.layer,))
        written, top, _ = self._written("alone", alone, given.shape[0], None, to_input)
        net = self._caffe.Net(written, self._caffe.TRAIN)
        self._fill(net, path[: len(path) - len(site.layer.name)], [site])
        data = net.blobs["data"]
        data.data[...] = _array(given).reshape(data.data.shape)
        return CaffeLayerPass(net, top, site, _array(gradient))

    def facts(self) -> Mapping[str, Any]:
        """Say whose pycaffe it was, and what its examination leaves open."""
        version = getattr(self._caffe, "__version__", None)
        told = {"pycaffe": version, "pycaffe_from": self._caffe.__file__}
        return {**told, "not_shown": [self._unshown] if self._unshown else []}

    def _plain(self) -> Network:
        network = self._workload.network
        return Network(network.input, undropped(network.layers))

    def _written(
        self,
        name: str,
        network: Network,
        samples: int,
        target: Optional[Tuple[int, ...]],
        to_input: bool = True,
    ) -> Tuple[str, str, float]:
        """Write a net that trains; give its file, its output's blob and what its loss counts."""
        lowering = Lowering(network, self._engines.of_sum())
        picture = network.input
        if len(picture) > 1:
            picture = (picture[0], *lowering.size(picture))
        _enter(lowering, "data", (samples, *picture))
        top = lowering.row(network.layers, "", "data")
        weight = 1.0
        if target is not None:
            _enter(lowering, "label", target)
            weight = lower_loss(lowering, self._workload.loss, network, top)
        message: Message = [("name", name), *self._engines.of_net(), ("force_backward", to_input)]
        message += [("layer", one) for one in lowering.layers]
        return self._write("{}.prototxt".format(name), message), top, weight

    def _feed(self, net: Any, given: Tensor, target: Tensor) -> None:
        """Set a whole net's parameters, statistics and batch."""
        self._fill(net, "", self._sites.values())
        data = net.blobs["data"]
        data.data[...] = _array(given).reshape(data.data.shape)
        net.blobs["label"].data[...] = _array(target)

    def _after(self, net: Any) -> Iterator[Made]:
        for name, shape in self._learned():
            yield _whole("after/" + name, _blob(net, name).data, shape)

    def _learned(self) -> Iterator[Tuple[str, Tuple[int, ...]]]:
        for site in self._sites.values():
            yield from parameter_shapes(site)

    def _fill(self, net: Any, prefix: str, places: Any) -> None:
        """Set parameters and statistics; ``prefix`` stands before a layer's name in the state."""
        for site in places:
            names = [name for name, _ in parameter_shapes(site)]
            if statistic_shapes(site):
                names += [name for name, _ in statistic_shapes(site)]
                net.params[site.path[len(prefix) :]][FACTOR].data[...] = 1
            for name in names:
                values = _blob(net, name[len(prefix) :]).data
                values[...] = self._state[name].reshape(values.shape)


def _enter(lowering: Lowering, name: str, shape: Sequence[int]) -> None:
    own: Message = [("shape", [("dim", size) for size in shape])]
    lowering.add(name, "Input", [], name, ("input_param", own))


def _blob(net: Any, name: str) -> Any:
    path, _, kind = name.rpartition("/")
    behind, index = BLOBS[kind]
    if path + behind in net.params:
        return net.params[path + behind][index]
    return net.params[path][FOLDED[kind]]


def _array(tensor: Tensor) -> Any:
    kind = {"float64": "<f8", "int64": "<i8"}[tensor.dtype]
    return numpy.fromfile(tensor.path, kind).reshape(tensor.shape)


def _made(name: str, values: Any, sample: Sequence[int]) -> Made:
    return _whole(name, values, (values.shape[0], *sample))


def _whole(name: str, values: Any, shape: Sequence[int]) -> Made:
    array = numpy.array(values, numpy.float64).reshape(shape)
    return name, tuple(int(size) for size in array.shape), numpy.ascontiguousarray(array)
