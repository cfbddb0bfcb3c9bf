"""Open tinygrad's own lowering to the examination, in float64 or as it is timed."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping, Tuple

import numpy
from tinygrad import Tensor as Lazy
from tinygrad import TinyJit, dtypes

from harness.worker.adapters.tinygrad.lowering import Pass, Tensors
from harness.worker.adapters.tinygrad.training import Trainer
from harness.worker.gate.subject import Made
from harness.worker.gate.tensors import Tensor
from harness.worker.network.layers import Dropout
from harness.worker.network.shapes import parameter_shapes
from harness.worker.network.workload import Training


class TinygradSubject:
    """One network under examination."""

    def __init__(self, workload: Training, precision: str) -> None:
        self._trainer = Trainer(workload, 0, "float64" if precision == "float64" else "float32")
        self._trainer.drops = False
        self._steps: Dict[int, Any] = {}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Set every parameter and running statistic, in place: a capture holds their buffers."""
        own = {**self._trainer.parameters, **self._trainer.statistics}
        for name, tensor in own.items():
            tensor.assign(self._trainer.tensor(_array(state[name]))).realize()

    def reset(self) -> None:
        """Forget the moments and the powers of the betas."""
        for moment in self._trainer.moments:
            for tensor in moment.values():
                tensor.assign(self._trainer.tensor(numpy.zeros(tensor.shape))).realize()
        for power in self._trainer.powers:
            power.assign(self._trainer.tensor(numpy.ones(1))).realize()

    def gradients(self, given: Tensor, target: Tensor) -> Iterator[Made]:
        """Run forward and backward once."""
        kept: Tensors = {}
        loss, output, one = self._trainer.loss(*self._batch(given, target), kept=kept)
        names = list(self._trainer.parameters)
        slopes = loss.gradient(*self._trainer.parameters.values())
        moved = [self._trainer.statistics[n].assign(value) for n, value in one.updated.items()]
        Lazy.realize(loss, output, *slopes, *moved, *kept.values())
        yield _made("output", output)
        yield _made("loss", loss)
        for name, slope in zip(names, slopes):
            yield _made("gradient/" + name, slope)
        for path, value in kept.items():
            if not isinstance(self._trainer.net.sites[path].layer, Dropout):
                yield _made("activation/" + path, value)

    def update(self, given: Tensor, target: Tensor) -> None:
        """Run one training step, captured as the timed one is."""
        size = given.shape[0]
        if size not in self._steps:
            self._steps[size] = TinyJit(lambda x, wanted: self._trainer.step(x, wanted, size))
        self._steps[size](*self._batch(given, target))

    def state(self) -> Iterator[Made]:
        """Give every parameter and running statistic."""
        for tensors in (self._trainer.parameters, self._trainer.statistics):
            for name, value in tensors.items():
                yield _made(name, value)

    def layer(self, path: str, given: Tensor, gradient: Tensor) -> Iterator[Made]:
        """Run one layer alone, forward and backward."""
        site = self._trainer.net.sites[path]
        own = {name: self._trainer.parameters[name] for name, _ in parameter_shapes(site)}
        x = self._trainer.tensor(_array(given))
        drops = isinstance(site.layer, Dropout)
        one = Pass(self._trainer.parameters, self._trainer.statistics, drops, {})
        y = self._trainer.net.layer(path, x, one)
        slope = self._trainer.tensor(_array(gradient))
        input_slope, *slopes = y.gradient(x, *own.values(), gradient=slope)
        Lazy.realize(y, input_slope, *slopes, *one.updated.values())
        yield _made("output", y)
        yield _made("input-gradient", input_slope)
        for name, value in zip(own, slopes):
            yield _made("gradient/" + name.rsplit("/", 1)[1], value)
        for name, value in one.updated.items():
            yield _made("statistic/" + name.rsplit("/", 1)[1], value)

    def facts(self) -> Mapping[str, Any]:
        """Say how the examination ran."""
        return {"compiled": "TinyJit", "precision": self._trainer.kind}

    def _batch(self, given: Tensor, target: Tensor) -> Tuple[Any, Any]:
        x = self._trainer.tensor(_array(given))
        if target.dtype == "int64":
            return x, Lazy(_array(target), dtype=dtypes.int32).realize()
        return x, self._trainer.tensor(_array(target))


def _array(tensor: Tensor) -> Any:
    kind = {"float64": "<f8", "int64": "<i8"}[tensor.dtype]
    return numpy.fromfile(tensor.path, kind).reshape(tensor.shape)


def _made(name: str, value: Any) -> Made:
    array = value.numpy().astype(numpy.float64, order="C")
    return name, tuple(int(size) for size in array.shape), array
