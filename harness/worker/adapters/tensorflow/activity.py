"""What the timed loop steps: a trainer and one batch that stays on the device.

The batch lies in variables, which the traced step reads: another one can be given, and nothing that
follows from its values is computed beforehand. As arguments, each call would take 50 µs longer.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator, Mapping, Optional, Tuple

import numpy
import tensorflow.compat.v2 as tf

from harness.worker.adapters.tensorflow import failures
from harness.worker.adapters.tensorflow.lowering.layouts import Arrangement
from harness.worker.adapters.tensorflow.settings import jitted, waiter
from harness.worker.adapters.tensorflow.subject import array_of, made
from harness.worker.facts.multiplications import Count, calls_per_step
from harness.worker.feed import Classes, Feed
from harness.worker.gate.subject import Made
from harness.worker.gate.tensors import Tensor
from harness.worker.network.tokens import texts


class TrainingActivity:
    """Steps of training on the synthetic batch."""

    batch: Tuple[Any, ...] = ()
    """What the traced step is called with: nothing, where it reads its batch by itself."""

    def __init__(
        self, trainer: Any, batch: Tuple[Any, Any], units: Mapping[str, float], compiled: bool
    ) -> None:
        self.units = units
        self._trainer = trainer
        self._types = batch[0].dtype, batch[1].dtype
        # What was rounded cannot be told from another batch.
        self.fed = self._read_batch if batch[0].dtype in (tf.float32, tf.int32) else None
        self._function = jitted(self._stepping(batch), compiled)
        # The concrete function skips most of the argument handling of every call.
        specs = [tf.TensorSpec(one.shape, one.dtype) for one in self.batch]
        self.traced = self._function.get_concrete_function(*specs)
        self.is_compiled = compiled
        self._loss: Optional[Any] = None
        self._wait = waiter()

    def _stepping(self, batch: Tuple[Any, Any]) -> Callable[..., Any]:
        """Put a batch where this rank's devices read it; give the step that does."""
        trainer, strategy = self._trainer, self._trainer.strategy
        self._parts = tf.nest.map_structure(_held, strategy.spread(batch))

        def step() -> Any:
            parts = tf.nest.map_structure(lambda part: part.read_value(), self._parts)
            return strategy.run(lambda: trainer.step(*parts, is_dropping=True))()

        return step

    def _taken(self) -> Tuple[Any, ...]:
        """Give inputs and targets of the batch, in as many parts as there are devices."""
        return tuple(tf.nest.flatten(self._parts))

    def _take(self, batch: Tuple[Any, Any]) -> None:
        """Replace the batch by one of the same shapes and types."""
        parts = self._trainer.strategy.spread(batch)
        tf.nest.map_structure(lambda held, part: held.assign(part), self._parts, parts)

    def step(self) -> None:
        """Run one step; on a GPU, enqueue it."""
        try:
            self._loss = self.traced(*self.batch)
        except tf.errors.OpError as error:
            raise failures.read(error) from error

    def sync(self) -> None:
        """Wait for the device; on a CPU the step has returned when it was done."""
        self._wait(self._loss)

    def values(self) -> Mapping[str, float]:
        """Give the loss."""
        return {} if self._loss is None else {"loss": float(self._loss)}

    def result(self) -> Any:
        """Give what the last step computed, where it was computed."""
        return self._loss

    def optimised(self) -> Optional[str]:
        """Give the text of the step as XLA optimised it, if it did and this version tells."""
        if not self.is_compiled or not hasattr(self._function, "experimental_get_compiler_ir"):
            return None
        told = self._function.experimental_get_compiler_ir(*self.batch)
        return str(told(stage="optimized_hlo"))

    def multiplications(self) -> Count:
        """Count those of the step, in the graph that was traced and that XLA compiles, if it does.

        XLA's own text tells the same, after it has compiled everything once more.
        """
        from harness.worker.facts import graph_multiplications

        found = graph_multiplications.tally(self.traced.graph)
        calls = calls_per_step(self, "traced")
        return found.of_step(calls, "the graph that TensorFlow traced")

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Set, in place, what is given of parameters, running statistics and the optimiser's."""
        arrangement = self._trainer.lowering.arrangement
        for name, parameter, variable, factor in changed_by_step(self._trainer):
            if name in state:
                value = arrangement.parameter_in(parameter, array_of(state[name]))
                variable.assign(own(numpy.float32(factor) * value, variable.dtype))
        if "step" in state:
            self._trainer.set_step(float(array_of(state["step"])))

    def give(self, given: Tensor, target: Tensor) -> None:
        """Replace the batch."""
        x = self._trainer.lowering.arrangement.activation_in(array_of(given), None)
        self._take((own(x, self._types[0]), own(array_of(target), self._types[1])))

    def _read_batch(self) -> Iterator[Made]:
        """Give the batch that the next step takes."""
        parts = [one.numpy() for one in self._taken()]
        half, arrangement = len(parts) // 2, self._trainer.lowering.arrangement
        x = arrangement.sample_out(numpy.concatenate(parts[:half]))
        for name, array in (("input", x), ("target", numpy.concatenate(parts[half:]))):
            yield made(name, array.astype(numpy.float32))

    def state(self) -> Iterator[Made]:
        """Give what is trained, as the first device holds it."""
        return self.replica(0)

    @property
    def replicas(self) -> int:
        """Count the devices that this rank drives."""
        return int(self._trainer.strategy.replicas)

    def replica(self, number: int) -> Iterator[Made]:
        """Give what is trained, as one device holds it."""
        arrangement, strategy = self._trainer.lowering.arrangement, self._trainer.strategy
        for name, parameter, variable, factor in changed_by_step(self._trainer):
            value = strategy.on(number, variable).numpy()
            value = arrangement.parameter_out(parameter, value)
            yield made(name, value if factor == 1 else (value / factor).astype(numpy.float32))

    def saver(self) -> Any:
        """Give what saves the trainer's state."""
        from harness.worker.adapters.tensorflow.saver import TensorFlowSaver

        return TensorFlowSaver(self._trainer.state())

    def parameters(self) -> int:
        """Count what the lowered network learns."""
        return sum(int(numpy.prod(value.shape)) for value in self._trainer.learned.values())

    def agree(self, value: float) -> float:
        """Give the largest value any rank offers."""
        return float(self._trainer.strategy.agree(value))


def changed_by_step(trainer: Any) -> Iterator[Tuple[str, str, Any, float]]:
    """Give what a step changes: its name, whose it is, the variable, what it is times."""
    for name, variable in trainer.values.items():
        yield name, name, variable, 1.0
    for moment, slots in trainer.moments().items():
        for name, variable in slots.items():
            yield "{}/{}".format(name, moment), name, variable, trainer.moment_factor


def _held(part: Any) -> Any:
    """Keep a tensor in a variable of the device that it lies on."""
    with tf.device(part.device):
        return tf.Variable(part, trainable=False)


def own(array: Any, dtype: Any) -> Any:
    """Copy an array into TensorFlow's memory: a plain conversion may leave it in numpy's."""
    return tf.cast(tf.constant(array) * 1, dtype)


def draw(feed: Feed, arrangement: Arrangement, dtype: Any) -> Any:
    """Draw one batch on the device, in the layout and type the network computes in."""
    if feed.vocabulary is not None:
        rows = feed.batch_per_rank
        tokens, target = (own(numpy.array(one).reshape(rows, -1), tf.int32) for one in texts(feed))
        return tokens, target
    shape = [feed.batch_per_rank, *arrangement.sample()]
    x = tf.cast(tf.random.stateless_normal(shape, (feed.seed, 1)), dtype)
    if isinstance(feed.targets, Classes):
        count = feed.targets.count
        seed = (feed.seed, 2)
        kind = tf.int32
        return x, tf.random.stateless_uniform([feed.batch_per_rank], seed, 0, count, dtype=kind)
    assert feed.targets is not None
    return x, tf.random.stateless_normal([feed.batch_per_rank, feed.targets.length], (feed.seed, 2))
