"""Put a SINGA network under examination, layer by layer, in fp32.

SINGA walks back from a single number, and only through tensors that keep their gradient. So a
layer's output goes into an operator that has one number to show, and whose way back is the gradient
that the examination wants to enter. All of it runs outside graph mode, where numbers can be read
between two operations.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, Dict, Iterator, Mapping, Sequence, Tuple

import numpy
from singa import autograd, tensor

from harness.worker.adapters.singa.lowering import Lowered, input_shape, registered
from harness.worker.adapters.singa.training import LOSSES, Trained
from harness.worker.contracts import Unsupported
from harness.worker.gate.subject import Made, undropped
from harness.worker.gate.tensors import Tensor
from harness.worker.network.layers import Dense, Network
from harness.worker.network.rule import product
from harness.worker.network.shapes import Site, parameter_shapes, sites, statistic_shapes
from harness.worker.network.words import lowering_of
from harness.worker.network.workload import Training, learning_rate

KINDS = {
    "weight": "W",
    "bias": "b",
    "gamma": "scale",
    "beta": "bias",
    "mean": "running_mean",
    "variance": "running_var",
}


class Enter(autograd.Operator):
    """Begin the walk back with a gradient of one's own."""

    def __init__(self, slope: Any) -> None:
        super().__init__()
        self._slope = slope

    def forward(self, y: Any) -> Any:
        """Give one number; nobody reads it."""
        return tensor.Tensor((1,), self._slope.device).data

    def backward(self, dy: Any) -> Any:
        """Give the gradient that was wanted."""
        return self._slope.data


class SingaLayerPass:
    """One layer alone, outside graph mode."""

    def __init__(
        self, net: Lowered, site: Site, x: Any, slope: Any, given: Tuple[int, ...]
    ) -> None:
        self._net = net
        self._site = site
        self._x = x
        self._slope = slope
        self._given = given
        self._y: Any = None
        self._slopes: Dict[int, Any] = {}

    def forward(self) -> None:
        """Enqueue the forward pass."""
        self._y = self._net.run(self._x)

    def both(self) -> None:
        """Enqueue both passes."""
        self.forward()
        if self._slope is not None:
            self._slopes = _slopes(Enter(self._slope)(self._y)[0])

    def sync(self) -> None:
        """Wait for the device."""
        self._x.device.Sync()

    def made(self) -> Iterator[Made]:
        """Give what both passes computed."""
        site, samples = self._site, self._given[0]
        if self._slope is None:
            yield _made("output", self._y, self._y.shape)
            return
        yield _made("output", self._y, (samples, *site.output))
        yield _made("input-gradient", self._slopes[id(self._x)], self._given)
        prefix = len(site.path) - len(site.layer.name)
        for name, canonical in parameter_shapes(site):
            own = self._slopes[id(_parameter(self._net, name[prefix:]))]
            kind = name.rpartition("/")[2]
            yield _made("gradient/" + kind, own, canonical, _is_turned(site, name))
        for name, canonical in statistic_shapes(site):
            own = _parameter(self._net, name[prefix:])
            yield _made("statistic/" + name.rpartition("/")[2], own, canonical)


class SingaSubject:
    """One network under examination."""

    def __init__(self, workload: Training, device: Any, is_cpu: bool, is_graph: bool) -> None:
        self._workload = workload
        self._device = device
        self._is_cpu = is_cpu
        self._is_graph = is_graph
        self._sites = {site.path: site for site in sites(workload.network)}
        self._state: Dict[str, Any] = {}
        self._whole: Any = None
        autograd.training = True  # or nothing is kept for the way back

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Remember every parameter and running statistic for the layers to come."""
        self._state = {name: _array(given) for name, given in state.items()}

    def reset(self) -> None:
        """Reset nothing: no weight was updated."""

    def gradients(self, given: Tensor, target: Tensor) -> Iterator[Made]:
        """Run the whole network forward and backward."""
        network = self._workload.network
        net, x, wanted = self._plain(given, target)
        net.run(x)  # makes the parameters
        self._fill(net, "", list(self._sites.values()))
        output = net.run(x)
        loss = lowering_of(LOSSES, self._workload.loss, "singa")(output, wanted)
        slopes = _slopes(loss)
        self._whole = net
        yield _made(
            "output", output, (given.shape[0], *self._sites[network.layers[-1].name].output)
        )
        yield _made("loss", loss, ())
        for site in self._sites.values():
            for name, shape in parameter_shapes(site):
                own = _parameter(net, name)
                yield _made("gradient/" + name, slopes[id(own)], shape, _is_turned(site, name))

    def own_updates(self, given: Tensor, target: Tensor, count: int) -> Iterator[Iterator[Made]]:
        """Let the optimiser train: what it starts from, then of each update gradients and state."""
        net, x, wanted = self._plain(given, target)
        rate = learning_rate(self._workload.optimiser, given.shape[0])
        model = Trained(net, self._workload, rate)
        model.compile([x], is_train=True, use_graph=False, sequential=False)
        places = [
            (site, name, shape)
            for site in self._sites.values()
            for name, shape in parameter_shapes(site)
        ]
        self._fill(net, "", list(self._sites.values()))
        slopes: Dict[int, Any] = {}
        apply = model.optimizer.apply

        def keep(name: str, value: Any, gradient: Any) -> None:
            """Copy a gradient before the optimiser makes its update of it, in its place."""
            slopes[id(value)] = tensor.to_numpy(gradient).copy()
            apply(name, value, gradient)

        model.optimizer.apply = keep

        def gradients() -> Iterator[Made]:
            for site, name, shape in places:
                slope = slopes[id(_parameter(net, name))]
                yield _turned("gradient/" + name, slope, shape, _is_turned(site, name))

        def after() -> Iterator[Made]:
            for site, name, shape in places:
                own = _parameter(net, name)
                yield _made("after/" + name, own, shape, _is_turned(site, name))

        yield after()
        for _ in range(count):
            model(x, wanted)
            yield chain(gradients(), after())

    def update(self, given: Tensor, target: Tensor) -> None:
        """Refuse: updates are compared in float64, which SINGA does not train in."""
        raise Unsupported("SINGA trains in fp32 only")

    def state(self) -> Iterator[Made]:
        """Give every parameter and running statistic after the pass."""
        for site in self._sites.values():
            for name, shape in _held(site):
                own = _parameter(self._whole, name)
                yield _made(name, own, shape, _is_turned(site, name))

    def layer(
        self, path: str, given: Tensor, gradient: Tensor, to_input: bool = True
    ) -> SingaLayerPass:
        """Open one layer alone."""
        site = self._sites[path]
        net = Lowered(Network(site.input, (site.layer,)), self._is_cpu)
        shape = input_shape(net, given.shape[0]) if len(site.input) > 1 else given.shape
        x = self._tensor(_array(given).reshape(shape), keeps=to_input)
        y = net.run(x)  # makes the parameters
        self._fill(net, path[: len(path) - len(site.layer.name)], [site])
        fits = product(y.shape) == gradient.count()  # else a mistake, which the gate is to name
        slope = self._tensor(_array(gradient).reshape(y.shape)) if fits else None
        return SingaLayerPass(net, site, x, slope, given.shape)

    def facts(self) -> Mapping[str, Any]:
        """Say how the examination ran, and what it leaves open."""
        buffered = "the step in graph mode: its layers were examined outside of it"
        return {"graph": False, "not_shown": [buffered] if self._is_graph else []}

    def _plain(self, given: Tensor, target: Tensor) -> Tuple[Lowered, Any, Any]:
        """Lower the whole network without dropping; give it, a batch and what it is to say."""
        network = self._workload.network
        net = Lowered(Network(network.input, undropped(network.layers)), self._is_cpu)
        x = self._tensor(_array(given).reshape(input_shape(net, given.shape[0])))
        if target.dtype != "int64":
            return net, x, self._tensor(_array(target))
        wanted = tensor.Tensor(target.shape, self._device, tensor.int32)
        wanted.copy_from_numpy(_array(target).astype(numpy.int32))
        return net, x, wanted

    def _fill(self, net: Lowered, prefix: str, places: Sequence[Site]) -> None:
        for site in places:
            for name, _ in _held(site):
                own = _parameter(net, name[len(prefix) :])
                values = self._state[name].T if _is_turned(site, name) else self._state[name]
                own.copy_from_numpy(_narrow(values).reshape(own.shape))

    def _tensor(self, array: Any, keeps: bool = False) -> Any:
        made = tensor.Tensor(array.shape, self._device, requires_grad=keeps, stores_grad=keeps)
        made.copy_from_numpy(_narrow(array))
        return made


def _slopes(loss: Any) -> Dict[int, Any]:
    """Walk back; give the gradients by what they belong to, which the caller keeps alive."""
    return {id(value): slope for value, slope in autograd.backward(loss)}


def _parameter(net: Lowered, name: str) -> Any:
    path, _, kind = name.rpartition("/")
    return getattr(net.layers[registered(path)], KINDS[kind])


def _held(site: Site) -> Sequence[Tuple[str, Tuple[int, ...]]]:
    return parameter_shapes(site) + statistic_shapes(site)


def _is_turned(site: Site, name: str) -> bool:
    """Tell whether SINGA holds a tensor the other way round: a dense layer's weight."""
    return isinstance(site.layer, Dense) and name.endswith("/weight")


def _narrow(array: Any) -> Any:
    return numpy.ascontiguousarray(array, numpy.float32)


def _array(given: Tensor) -> Any:
    kind = {"float64": "<f8", "int64": "<i8"}[given.dtype]
    return numpy.fromfile(given.path, kind).reshape(given.shape)


def _made(name: str, value: Any, shape: Sequence[int], is_turned: bool = False) -> Made:
    return _turned(name, tensor.to_numpy(value), shape, is_turned)


def _turned(name: str, values: Any, shape: Sequence[int], is_turned: bool) -> Made:
    array = values.astype(numpy.float64)
    array = (array.T if is_turned else array).reshape(shape)
    return name, tuple(int(size) for size in array.shape), numpy.ascontiguousarray(array)
