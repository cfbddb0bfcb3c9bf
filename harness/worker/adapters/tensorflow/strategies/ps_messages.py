"""Move messages between parameter servers: a rank reads what another one holds.

That is how TensorFlow's distributed graphs communicate, and all they do: who reads asks over gRPC,
and the message lies in host memory at both ends. Messages are float32 throughout.
"""

from __future__ import annotations

from typing import Any, Callable, List, Tuple

import tensorflow.compat.v2 as tf

from harness.worker.adapters.tensorflow.strategies.servers import ParameterServers
from harness.worker.collective import FLOAT_BYTES
from harness.worker.contracts import Unsupported


class Pull:
    """One message, read again and again."""

    def __init__(self, operation: str, message: int, strategy: ParameterServers) -> None:
        place = strategy.place
        if operation not in ("broadcast", "point-to-point"):
            raise Unsupported(
                "parameter servers are read from, one by one; {} is multiworker's".format(operation)
            )
        if message % FLOAT_BYTES:
            raise Unsupported(
                "TensorFlow reads float32: {} bytes are no whole number of them".format(message)
            )
        source = 0 if operation == "broadcast" else (place.rank - 1) % place.size
        shape = [message // FLOAT_BYTES]
        session, self.agree = strategy.session, strategy.agree
        with strategy.graph.as_default():
            held = []
            for number, server in enumerate(strategy.servers):
                with tf.device(server):
                    held.append(tf.Variable(tf.zeros(shape), name="message{}".format(number)))
            with tf.device(strategy.servers[place.rank]):
                self._said = tf.compat.v1.placeholder(tf.float32, [])
                fill = held[place.rank].assign(tf.fill(shape, self._said)).op
                self._arrived = tf.Variable(tf.zeros(shape), name="arrived")
                taken = self._arrived.assign(held[source].read_value()).op
                parts = tf.reduce_min(self._arrived), tf.reduce_max(self._arrived)
        session.run([held[place.rank].initializer, self._arrived.initializer])
        self._fill: Callable[[float], Any] = lambda value: session.run(fill, {self._said: value})
        self.step = session.make_callable(taken)
        self._extremes = session.make_callable(parts)

    def fill(self, value: float) -> None:
        """Let this rank's message hold a value, when nobody reads it."""
        self.agree(0.0)
        self._fill(value)
        self.agree(0.0)

    def sync(self) -> None:
        """Return at once: a session returns when all is done."""

    def received(self) -> List[Tuple[float, float]]:
        """Give the extremes of what arrived."""
        low, high = self._extremes()
        return [(float(low), float(high))]
