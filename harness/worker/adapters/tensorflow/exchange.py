"""Exchange messages in TensorFlow: a traced function around one collective.

Messages are float32 throughout, as TensorFlow's collectives move no bytes.
"""

from __future__ import annotations

from typing import Any, List, Tuple

import tensorflow.compat.v2 as tf

from harness.worker.adapters.tensorflow.settings import jitted, waiter
from harness.worker.adapters.tensorflow.strategies.strategies import Strategy
from harness.worker.collective import FLOAT_BYTES
from harness.worker.contracts import Unsupported


class Exchange:
    """One message, exchanged again and again."""

    def __init__(self, operation: str, message: int, size: int, strategy: Strategy) -> None:
        exchanged = strategy.collective(operation)
        self.agree = strategy.agree
        self._parts = size if operation == "all-gather" else 1
        if message % (FLOAT_BYTES * self._parts):
            raise Unsupported(
                "TensorFlow exchanges float32: {} bytes are no whole number of them a rank".format(
                    message // self._parts
                )
            )
        count = message // FLOAT_BYTES // self._parts
        self._sent = tf.Variable(tf.zeros([count]), trainable=False)
        step = jitted(strategy.run(lambda: exchanged(self._sent.read_value())), False)
        self._traced = step.get_concrete_function()
        self._arrived: Any = None
        self._wait = waiter()

    def fill(self, value: float) -> None:
        """Let this rank's message hold a value."""
        self._sent.assign(tf.fill(self._sent.shape, value))

    def step(self) -> None:
        """Exchange once; on a GPU, enqueue it."""
        self._arrived = self._traced()

    def sync(self) -> None:
        """Wait for the device; on a CPU a step has returned when it was done."""
        self._wait(self._arrived)

    def received(self) -> List[Tuple[float, float]]:
        """Give the extremes of what arrived."""
        parts = self._arrived.numpy().reshape(self._parts, -1)
        return [(float(part.min()), float(part.max())) for part in parts]
