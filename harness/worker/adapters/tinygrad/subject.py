"""Open tinygrad's own lowering to the examination, in float64 or as it is timed."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Tuple

import numpy
from tinygrad import Device, TinyJit, dtypes
from tinygrad import Tensor as Lazy

from harness.worker.adapters.tinygrad.lowering import Pass, Tensors
from harness.worker.adapters.tinygrad.training import Trainer, array_of, made
from harness.worker.gate.subject import Made
from harness.worker.gate.tensors import Tensor
from harness.worker.network.layers import Dropout
from harness.worker.network.shapes import operands, statistic_shapes
from harness.worker.network.workload import Training


class TinygradLayerPass:
    """One layer alone, captured as the timed step is."""

    def __init__(self, trainer: Trainer, path: str, x: Any, slope: Any, to_input: bool) -> None:
        self._trainer = trainer
        self._path = path
        self._x = x
        self._slope = slope
        site = trainer.net.sites[path]
        self._drops = isinstance(site.layer, Dropout)
        own = {name: trainer.parameters[name] for name in operands(site).values()}
        self._sources = {**({"input-gradient": x} if to_input else {}), **own}
        self._moved = [name for name, _ in statistic_shapes(site)]
        self._captured = {False: TinyJit(self._run_forward), True: TinyJit(self._run_both)}
        self._result: Any = None

    def forward(self) -> None:
        """Enqueue the forward pass."""
        self._result = self._captured[False]()

    def both(self) -> None:
        """Enqueue both passes."""
        self._result = self._captured[True]()

    def sync(self) -> None:
        """Wait for the last pass."""
        Device[Device.DEFAULT].synchronize()

    def made(self) -> Iterator[Made]:
        """Give what both passes computed."""
        y, *rest = self._result
        yield made("output", y)
        slopes = rest[: len(self._sources)]
        for name, value in zip(self._sources, slopes):
            kind = name if name == "input-gradient" else "gradient/" + name.rsplit("/", 1)[1]
            yield made(kind, value)
        for name, value in zip(self._moved, rest[len(slopes) :]):
            yield made("statistic/" + name.rsplit("/", 1)[1], value)

    def _pass(self) -> Tuple[Any, List[Any]]:
        one = Pass(self._trainer.parameters, self._trainer.statistics, self._drops, {})
        y = self._trainer.net.layer(self._path, self._x, one)
        return y, [one.updated[name] for name in self._moved]

    def _run_forward(self) -> List[Any]:
        y, moved = self._pass()
        Lazy.realize(y, *moved)
        return [y, *moved]

    def _run_both(self) -> List[Any]:
        y, moved = self._pass()
        slopes = y.gradient(*self._sources.values(), gradient=self._slope)
        Lazy.realize(y, *slopes, *moved)
        return [y, *slopes, *moved]


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
            tensor.assign(self._trainer.tensor(array_of(state[name]))).realize()

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
        if isinstance(output, tuple):  # two heads, side by side as the vocabulary counts them
            output = Lazy.cat(*(one.flatten(1) for one in output), dim=1)
        Lazy.realize(loss, output, *slopes, *moved, *kept.values())
        yield made("output", output)
        yield made("loss", loss)
        for name, slope in zip(names, slopes):
            yield made("gradient/" + name, slope)
        for path, value in kept.items():
            if not isinstance(self._trainer.net.sites[path].layer, Dropout):
                yield made("activation/" + path, value)

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
                yield made(name, value)

    def layer(
        self, path: str, given: Tensor, gradient: Tensor, to_input: bool = True
    ) -> TinygradLayerPass:
        """Open one layer alone."""
        x, slope = self._tensor(given), self._tensor(gradient)
        return TinygradLayerPass(self._trainer, path, x, slope, to_input)

    def facts(self) -> Mapping[str, Any]:
        """Say how the examination ran."""
        return {"compiled": "TinyJit", "precision": self._trainer.kind}

    def _batch(self, given: Tensor, target: Tensor) -> Tuple[Any, Any]:
        return self._tensor(given), self._tensor(target)

    def _tensor(self, tensor: Tensor) -> Any:
        """Put numbers on the device; tokens and class numbers stay integers."""
        if tensor.dtype == "int64":
            return Lazy(array_of(tensor), dtype=dtypes.int32).realize()
        return self._trainer.tensor(array_of(tensor))
