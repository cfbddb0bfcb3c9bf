"""Open a Keras model on JAX or torch to the gate: the same lowering and step, laid bare."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Mapping, NamedTuple, Optional

import keras
import numpy

from harness.worker.adapters.keras.activity import array_of, made, narrow
from harness.worker.adapters.keras.lowering import KerasLowering
from harness.worker.gate.subject import Made
from harness.worker.gate.tensors import Tensor
from harness.worker.network.shapes import operands, statistics
from harness.worker.network.workload import Training


class Alone(NamedTuple):
    """A layer alone: where it stands, what it holds, and how it is computed both ways."""

    spot: Any
    own: Mapping[str, Any]
    forward: Callable[[Any], Any]
    both: Callable[[Any, Any], Any]
    to_input: bool


class KerasLayerPass:
    """One layer alone."""

    def __init__(self, arrangement: Any, stepper: Any, alone: Alone, x: Any, slope: Any) -> None:
        self._arrangement = arrangement
        self._stepper = stepper
        self._alone = alone
        self._x = x
        self._slope = slope
        self._result: Any = None

    def forward(self) -> None:
        """Enqueue the forward pass."""
        self._result = self._alone.forward(self._x)

    def both(self) -> None:
        """Enqueue both passes."""
        self._result = self._alone.both(self._x, self._slope)

    def sync(self) -> None:
        """Wait for the device."""
        self._stepper.wait(self._result[0])

    def made(self) -> Iterator[Made]:
        """Give what both passes computed."""
        spot, array = self._alone.spot, self._stepper.array
        y, slopes, moved = self._result
        out = self._arrangement.activation_out
        yield made("output", out(array(y), spot.output, spot.flat_out))
        if self._alone.to_input:
            yield made("input-gradient", out(array(slopes[0]), spot.input, spot.flat_in))
            slopes = slopes[1:]
        yield from self._parameters("gradient/", dict(zip(self._alone.own, slopes)))
        yield from self._parameters("statistic/", moved)

    def _parameters(self, prefix: str, values: Mapping[str, Any]) -> Iterator[Made]:
        for name, value in values.items():
            canonical = self._arrangement.parameter_out(name, self._stepper.array(value))
            yield made(prefix + name.rpartition("/")[2], canonical)


class KerasSubject:
    """One network under examination; ``start`` gives a stepper for a lowering and a batch."""

    def __init__(self, workload: Training, start: Callable[[Any, int], Any]) -> None:
        self._lowering = KerasLowering(workload.network, is_dropping=False)
        self._arrangement = self._lowering.arrangement
        self._start = start
        self._stepper: Optional[Any] = None

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Set every parameter and running statistic; leave the optimiser's state alone."""
        if self._stepper is not None:
            self._stepper.settle()
        for name, tensor in state.items():
            value = self._arrangement.parameter_in(name, array_of(tensor))
            self._lowering.variable(name).assign(numpy.array(value, self._type()))

    def reset(self) -> None:
        """Forget the optimiser's state."""
        if self._stepper is not None:
            self._stepper.settle()
            self._stepper.trainer.reset()

    def gradients(self, given: Tensor, target: Tensor) -> Iterator[Made]:
        """Run forward and backward, and move the running statistics."""
        stepper = self._opened(given.shape[0])
        output, loss, slopes, layers = stepper.gradients(*self._batch(given, target))
        out, array = self._arrangement.activation_out, stepper.array
        last = list(self._arrangement.spots.values())[-1]
        if isinstance(output, (list, tuple)):  # two heads, side by side as they are counted
            heads = [array(one).reshape(len(one), -1) for one in output]
            yield made("output", numpy.concatenate(heads, axis=1))
        else:
            yield made("output", out(array(output), last.output, last.flat_out))
        yield made("loss", array(loss))
        for name, value in slopes.items():
            yield made("gradient/" + name, self._arrangement.parameter_out(name, array(value)))
        for path, value in layers.items():
            spot = self._arrangement.spots[path]
            yield made("activation/" + path, out(array(value), spot.output, spot.flat_out))

    def update(self, given: Tensor, target: Tensor) -> None:
        """Run one whole training step."""
        self._opened(given.shape[0]).step(*self._batch(given, target))

    def state(self) -> Iterator[Made]:
        """Give every parameter and running statistic."""
        assert self._stepper is not None
        self._stepper.settle()
        for name in (*self._arrangement.parameters, *self._arrangement.statistics):
            value = self._stepper.array(self._lowering.variable(name).value)
            yield made(name, self._arrangement.parameter_out(name, value))

    def layer(
        self, path: str, given: Tensor, gradient: Tensor, to_input: bool = True
    ) -> KerasLayerPass:
        """Open one layer alone, as it is timed."""
        spot, stepper = self._arrangement.spots[path], self._opened(given.shape[0])
        x = self._arrangement.activation_in(array_of(given), spot.flat_in, spot.input)
        slope = self._arrangement.activation_in(array_of(gradient), spot.flat_out, spot.output)
        own = {name: self._lowering.variable(name) for name in operands(spot.site).values()}
        moved = {name: self._lowering.variable(name) for name, _ in statistics(spot.site)}
        forward, both = stepper.alone(path, own, moved, to_input=to_input)
        numbers = (stepper.tensor(narrow(one, self._type())) for one in (x, slope))
        alone = Alone(spot, own, forward, both, to_input)
        return KerasLayerPass(self._arrangement, stepper, alone, *numbers)

    def facts(self) -> Mapping[str, Any]:
        """Say what the examination ran with."""
        return {"backend": keras.backend.backend(), "dtype": keras.config.dtype_policy().name}

    def _opened(self, batch: int) -> Any:
        """Start the optimiser once the batch of a step is known."""
        if self._stepper is None:
            self._stepper = self._start(self._lowering, batch)
        return self._stepper

    def _batch(self, given: Tensor, target: Tensor) -> Any:
        x = self._arrangement.activation_in(array_of(given), None)
        arrays = (narrow(one, self._type()) for one in (x, array_of(target)))
        return [self._opened(given.shape[0]).tensor(one) for one in arrays]

    @staticmethod
    def _type() -> str:
        return str(keras.config.dtype_policy().variable_dtype)
