"""Put a lowered network under examination, named and laid out as the gate asks."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

import numpy
import tensorflow.compat.v2 as tf

from harness.worker.adapters.tensorflow import settings
from harness.worker.adapters.tensorflow.lowering.layouts import Arrangement
from harness.worker.gate.subject import Made
from harness.worker.gate.tensors import Tensor
from harness.worker.network.shapes import operands, statistics


class TensorFlowLayerPass:
    """One layer alone, traced both ways when it is first asked for."""

    def __init__(
        self,
        arrangement: Arrangement,
        path: str,
        alone: Tuple[Any, Dict[str, Any]],
        numbers: Tuple[Any, Any],
        *,
        compiled: bool,
        to_input: bool,
    ) -> None:
        self._arrangement = arrangement
        self._path = path
        self._call, self._learned = alone
        self._x, self._incoming = numbers
        self._to_input = to_input
        self._compiled = compiled
        self._traced: Dict[str, Any] = {}
        self._result: Any = None
        self._wait = settings.waiter()

    def forward(self) -> None:
        """Enqueue the forward pass."""
        self._run("forward", lambda: self._call(self._x))

    def both(self) -> None:
        """Enqueue both passes."""
        self._run("both", self._both)

    def sync(self) -> None:
        """Wait for the device."""
        self._wait(self._result[0])

    def made(self) -> Iterator[Made]:
        """Give what both passes computed."""
        spot = self._arrangement.spots[self._path]
        y, found, moved = self._result
        yield made("output", self._activation(y, spot.output, spot.flat_out))
        if self._to_input:
            before, *found = found
            yield made("input-gradient", self._activation(before, spot.input, spot.flat_in))
        for name, value in zip(self._learned, found):
            yield self._parameter("gradient/", name, value)
        for name, value in moved.items():
            yield self._parameter("statistic/", name, value)

    def _run(self, name: str, passes: Any) -> None:
        if name not in self._traced:
            self._traced[name] = settings.jitted(passes, self._compiled).get_concrete_function()
        self._result = self._traced[name]()

    def _both(self) -> Tuple[Any, Any, Any]:
        sources = [*([self._x] if self._to_input else []), *self._learned.values()]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            y, moved = self._call(self._x)
        incoming = tf.cast(self._incoming, y.dtype)
        slopes = tape.gradient(y, sources, output_gradients=incoming)
        return y, [tf.convert_to_tensor(one) for one in slopes], moved  # of a table, rows

    def _activation(self, value: Any, canonical: Tuple[int, ...], flat: Any) -> Any:
        return self._arrangement.activation_out(to_float64(value), canonical, flat)

    def _parameter(self, kind: str, name: str, value: Any) -> Made:
        array = self._arrangement.parameter_out(name, to_float64(value))
        return made(kind + name.rpartition("/")[2], array)


class TensorFlowSubject:
    """One network: in float64, or as the factors of the job say it is timed.

    ``lowered`` gives its ``arrangement``, ``dtype``, ``stored`` type, a ``trainer`` and each layer
    ``alone``; Keras has its own.
    """

    def __init__(self, lowered: Any, compiled: bool) -> None:
        self._lowered = lowered
        self._compiled = compiled
        self._eager: Optional[str] = None
        self._arrangement: Arrangement = lowered.arrangement
        self._state: Mapping[str, Any] = {}
        self._trainer: Any = None
        self._update: Any = None

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Set every parameter and running statistic; leave the optimiser's state alone."""
        self._state = {
            name: numpy.ascontiguousarray(self._arrangement.parameter_in(name, array_of(tensor)))
            for name, tensor in state.items()
        }
        if self._trainer is not None:
            for name, value in self._state.items():
                variable = self._trainer.values[name]
                variable.assign(tf.cast(value, variable.dtype))

    def reset(self) -> None:
        """Forget the optimiser's state."""
        if self._trainer is not None:
            self._trainer.reset()

    def gradients(self, given: Tensor, target: Tensor) -> Iterator[Made]:
        """Run forward and backward, and move the running statistics."""
        trainer, batch = self._start(given), self._batch(given, target)

        def run() -> Any:
            return settings.jitted(lambda: trainer.examine(*batch), self._compiled)()

        try:
            output, loss, gradients, activations = run()
        except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError) as error:
            if not self._compiled or self._lowered.dtype != tf.float64:
                raise
            self._compiled, self._eager = False, str(error).strip().splitlines()[0]
            output, loss, gradients, activations = run()
        last = list(self._arrangement.spots.values())[-1]
        if isinstance(output, (tuple, list)):  # two heads, side by side as they are counted
            output = tf.concat([tf.reshape(one, [len(one), -1]) for one in output], axis=1)
        yield made("output", self._activation(output, last.output, last.flat_out))
        yield made("loss", to_float64(loss))
        for name, value in gradients.items():
            yield made("gradient/" + name, self._parameter(name, value))
        for path, value in activations.items():
            spot = self._arrangement.spots[path]
            yield made("activation/" + path, self._activation(value, spot.output, spot.flat_out))

    def update(self, given: Tensor, target: Tensor) -> None:
        """Run one whole training step."""
        trainer = self._start(given)
        if self._update is None:
            batch = self._batch(given, target)
            self._update = settings.jitted(
                lambda: trainer.step(*batch, is_dropping=False), self._compiled
            )
        self._update()

    def state(self) -> Iterator[Made]:
        """Give every parameter and running statistic."""
        for name, variable in self._trainer.values.items():
            yield made(name, self._parameter(name, variable))

    def layer(
        self, path: str, given: Tensor, gradient: Tensor, to_input: bool = True
    ) -> TensorFlowLayerPass:
        """Open one layer alone, as it is timed."""
        spot, dtype = self._arrangement.spots[path], self._lowered.dtype
        array = self._arrangement.activation_in(array_of(given), spot.flat_in, spot.input)
        x = fed(array, dtype)
        # A tensor, not an array: an array would be a constant of the traced function, and what
        # follows from constants is computed beforehand, by other kernels than those that are timed.
        slope = array_of(gradient)
        incoming = self._arrangement.activation_in(slope, spot.flat_out, spot.output)
        read = {*operands(spot.site).values(), *(name for name, _ in statistics(spot.site))}
        own = {name: value for name, value in self._cast_state().items() if name in read}
        alone = self._lowered.alone(path, own)
        numbers = x, tf.cast(tf.constant(incoming), dtype)
        return TensorFlowLayerPass(
            self._arrangement, path, alone, numbers, compiled=self._compiled, to_input=to_input
        )

    def facts(self) -> Mapping[str, Any]:
        """Say what the examination ran with."""
        return {
            "compiler": "xla" if self._compiled else None,
            "compiled": self._compiled,
            "eager": self._eager,
            "dtype": self._lowered.dtype.name,
        }

    def _start(self, given: Tensor) -> Any:
        """Make variables and optimiser once the batch of a step is known."""
        if self._trainer is None:
            self._trainer = self._lowered.trainer(self._cast_state(), given.shape[0])
        return self._trainer

    def _cast_state(self) -> Dict[str, Any]:
        stored = self._lowered.stored
        return {name: tf.cast(value, stored) for name, value in self._state.items()}

    def _batch(self, given: Tensor, target: Tensor) -> Tuple[Any, Any]:
        array = self._arrangement.activation_in(array_of(given), None)
        return fed(array, self._lowered.dtype), fed(array_of(target), tf.float64)

    def _activation(self, value: Any, canonical: Tuple[int, ...], flat: Any) -> Any:
        return self._arrangement.activation_out(to_float64(value), canonical, flat)

    def _parameter(self, name: str, value: Any) -> Any:
        return self._arrangement.parameter_out(name, to_float64(value))


def array_of(tensor: Tensor) -> Any:
    """Read a tensor as an array."""
    return numpy.frombuffer(tensor.items(), dtype=tensor.dtype).reshape(tensor.shape)


def fed(array: Any, dtype: Any) -> Any:
    """Make numbers that a network is fed its own type; tokens and class numbers stay integers."""
    return tf.cast(array, tf.int32 if array.dtype == numpy.int64 else dtype)


def to_float64(value: Any) -> Any:
    """Bring any tensor or variable to float64 on the host."""
    return tf.cast(value, tf.float64).numpy()


def made(name: str, array: Any) -> Made:
    """Shape an array as the examination takes it."""
    return name, array.shape, numpy.ascontiguousarray(array).reshape(-1)
