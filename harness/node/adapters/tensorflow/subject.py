"""This file puts a lowered network under examination, named and laid out as ``examine.py`` says."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Tuple

import numpy
import tensorflow.compat.v2 as tf

from harness.node.adapters.tensorflow import settings
from harness.node.adapters.tensorflow.layers import Pass
from harness.node.adapters.tensorflow.lowering import Lowering
from harness.node.adapters.tensorflow.training import Trainer
from harness.node.contracts import Unsupported
from harness.node.examine import Made
from harness.node.network import Dropout
from harness.node.tensors import Tensor
from harness.node.workload import Training


class TensorFlowSubject:
    """One network: in float64, or as the factors of the job say it is timed."""

    def __init__(self, workload: Training, factors: Mapping[str, Any], precision: str) -> None:
        self._compiled = bool(factors.get("compile")) and precision != "float64"
        self._style = settings.style(factors, precision)
        self._lowering = Lowering(workload.network, self._style)
        self._arrangement = self._lowering.arrangement
        self._workload = workload
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
            self._trainer.update.reset()

    def gradients(self, given: Tensor, target: Tensor) -> Iterator[Made]:
        """Run forward and backward, and move the running statistics."""
        trainer = self._start(given)

        def run() -> Any:
            now, output, loss, gradients = trainer.gradients(*batch, is_dropping=False)
            return now.moved, now.activations, output, loss, gradients

        batch = self._batch(given, target)
        moved, activations, output, loss, gradients = settings.jitted(run, self._compiled)()
        for name, value in moved.items():
            trainer.values[name].assign(value)
        last = list(self._arrangement.spots.values())[-1]
        yield made("output", self._activation(output, last.output, last.flat_out))
        yield made("loss", numpy.reshape(to_float64(loss), ()))
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

    def layer(self, path: str, given: Tensor, gradient: Tensor) -> Iterator[Made]:
        """Run one layer alone, as it is timed."""
        spot = self._arrangement.spots[path]
        style = self._style
        x = tf.cast(self._arrangement.activation_in(array_of(given), spot.flat_in), style.dtype)
        incoming = self._arrangement.activation_in(array_of(gradient), spot.flat_out)
        values = {
            name: tf.cast(value, self._lowering.stored)
            for name, value in self._state.items()
            if name.rpartition("/")[0] == path
        }
        learned = [name for name in values if name in self._arrangement.parameters]

        def run() -> Tuple[Any, Any]:
            now = Pass(style, values, is_dropping=isinstance(spot.layer, Dropout))
            with tf.GradientTape() as tape:
                tape.watch([x, *(values[name] for name in learned)])
                y = self._lowering.layer(path, now, x)
            sources = [x, *(values[name] for name in learned)]
            return y, tape.gradient(y, sources, output_gradients=tf.cast(incoming, y.dtype))

        y, found = settings.jitted(run, self._compiled)()
        yield made("output", self._activation(y, spot.output, spot.flat_out))
        yield made("input-gradient", self._activation(found[0], spot.input, spot.flat_in))
        for name, value in zip(learned, found[1:]):
            kind = name.rpartition("/")[2]
            yield made("gradient/" + kind, self._parameter(name, value))

    def record(self, given: Tensor, target: Tensor) -> Iterator[Made]:
        """Refuse: only the reference records what layers are examined on."""
        raise Unsupported("tensorflow adapter: the reference is torch")

    def facts(self) -> Mapping[str, Any]:
        """Say what the examination ran with."""
        return {"compiler": "xla" if self._compiled else None, "dtype": self._style.dtype.name}

    def _start(self, given: Tensor) -> Any:
        """Make variables and optimiser once the global batch is known."""
        if self._trainer is None:
            initial = {
                name: tf.cast(self._state[name], self._lowering.stored)
                for name in (*self._arrangement.parameters, *self._arrangement.statistics)
            }
            self._trainer = Trainer(self._workload, self._lowering, initial, given.shape[0])
        return self._trainer

    def _batch(self, given: Tensor, target: Tensor) -> Tuple[Any, Any]:
        array = self._arrangement.activation_in(array_of(given), None)
        return tf.cast(array, self._style.dtype), tf.constant(array_of(target))

    def _activation(self, value: Any, canonical: Tuple[int, ...], flat: Any) -> Any:
        return self._arrangement.activation_out(to_float64(value), canonical, flat)

    def _parameter(self, name: str, value: Any) -> Any:
        return self._arrangement.parameter_out(name, to_float64(value))


def array_of(tensor: Tensor) -> Any:
    """Read a tensor as an array."""
    return numpy.frombuffer(tensor.items(), dtype=tensor.dtype).reshape(tensor.shape)


def to_float64(value: Any) -> Any:
    """Bring any tensor or variable to float64 on the host."""
    return tf.cast(value, tf.float64).numpy()


def made(name: str, array: Any) -> Made:
    """Shape an array as the examination takes it."""
    return name, array.shape, numpy.ascontiguousarray(array).reshape(-1)
