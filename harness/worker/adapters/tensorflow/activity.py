"""What the timed loop steps: a trainer and one batch that stays on the device."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Tuple

import numpy
import tensorflow.compat.v2 as tf

from harness.worker.adapters.tensorflow import failures
from harness.worker.adapters.tensorflow.lowering.layouts import Arrangement
from harness.worker.adapters.tensorflow.settings import has_gpu, jitted
from harness.worker.feed import Classes, Feed


class TrainingActivity:
    """Steps of training on the synthetic batch."""

    def __init__(
        self, trainer: Any, batch: Tuple[Any, Any], units: Mapping[str, float], compiled: bool
    ) -> None:
        self.units = units
        self._trainer = trainer
        x, target = batch

        def step() -> Any:
            return trainer.step(x, target, is_dropping=True)

        self._function = jitted(trainer.strategy.run(step), compiled)
        # The concrete function skips the argument handling of every call.
        self.traced = self._function.get_concrete_function()
        self.is_compiled = compiled
        self._loss: Optional[Any] = None
        self._wait = waiter()

    def step(self) -> None:
        """Run one step; on a GPU, enqueue it."""
        try:
            self._loss = self.traced()
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
        return str(self._function.experimental_get_compiler_ir()(stage="optimized_hlo"))

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


def waiter() -> Any:
    """Find what waits for a GPU; nothing is needed on a CPU, where calls return when done."""
    if not has_gpu():
        return lambda _: None
    if hasattr(tf.test, "experimental"):
        return lambda _: tf.test.experimental.sync_devices()
    # TensorFlow 1.15: reading a result waits for all that was enqueued before.
    return lambda result: None if result is None else result.numpy()


def draw(feed: Feed, arrangement: Arrangement, dtype: Any) -> Any:
    """Draw one batch on the device, in the layout and type the network computes in."""
    shape = [feed.batch_per_rank, *arrangement.sample()]
    x = tf.cast(tf.random.stateless_normal(shape, (feed.seed, 1)), dtype)
    if isinstance(feed.targets, Classes):
        count = feed.targets.count
        seed = (feed.seed, 2)
        kind = tf.int32
        return x, tf.random.stateless_uniform([feed.batch_per_rank], seed, 0, count, dtype=kind)
    assert feed.targets is not None
    return x, tf.random.stateless_normal([feed.batch_per_rank, feed.targets.length], (feed.seed, 2))
