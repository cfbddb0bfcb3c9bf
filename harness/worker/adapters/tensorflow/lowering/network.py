"""Lower a network: its layers in order, its loss, and the values it starts from."""

from __future__ import annotations

import math
from typing import Any, Dict, Sequence, Tuple

import numpy
import tensorflow.compat.v2 as tf

from harness.worker.adapters.tensorflow.lowering.layer_style import Pass, Style
from harness.worker.adapters.tensorflow.lowering.layers import run
from harness.worker.adapters.tensorflow.lowering.layouts import Arrangement
from harness.worker.network.layers import Conv, Dense, Dropout, Layer, Network, Residual


class Lowering:
    """A network written in TensorFlow operations."""

    def __init__(self, network: Network, style: Style) -> None:
        self.network = network
        self.style = style
        self.arrangement = Arrangement(network, style.channels_last)
        self.stored = tf.float64 if style.dtype == tf.float64 else tf.float32

    def forward(self, now: Pass, x: Any) -> Any:
        """Run every layer; the pass remembers activations and new running statistics."""
        return self._run(self.network.layers, "", now, x)

    def layer(self, path: str, now: Pass, x: Any) -> Any:
        """Run one layer alone."""
        return run(self.arrangement.spots[path], now, x)

    def decayed(self) -> Sequence[str]:
        """Name the parameters that weight decay touches."""
        spots = self.arrangement.spots.values()
        return [spot.path + "/weight" for spot in spots if isinstance(spot.layer, (Conv, Dense))]

    def initial(self, seed: int) -> Dict[str, Any]:
        """Draw every parameter and running statistic, in this layout."""
        drawn = {}
        named = {**self.arrangement.parameters, **self.arrangement.statistics}
        for number, (name, canonical) in enumerate(named.items()):
            shape = self.arrangement.parameter_in(name, numpy.broadcast_to(0.0, canonical)).shape
            drawn[name] = self._draw(name, shape, (seed, number), self.stored)
        return drawn

    def _draw(self, name: str, shape: Tuple[int, ...], seed: Tuple[int, int], dtype: Any) -> Any:
        path, _, kind = name.rpartition("/")
        if kind != "weight":
            fill = 1.0 if kind in ("gamma", "variance") else 0.0
            return tf.fill(shape, tf.constant(fill, dtype))
        layer, deviation = self.arrangement.spots[path].layer, 0.01
        if isinstance(layer, Conv):
            deviation = math.sqrt(2 / (layer.channels * numpy.prod(shape[:-2])))
        return tf.random.stateless_normal(shape, seed, stddev=deviation, dtype=dtype)

    def _run(self, layers: Sequence[Layer], prefix: str, now: Pass, x: Any) -> Any:
        for layer in layers:
            path = prefix + layer.name
            if isinstance(layer, Residual):
                body = self._run(layer.body, path + "/", now, x)
                x = body + self._run(layer.shortcut, path + "/", now, x)
            else:
                x = run(self.arrangement.spots[path], now, x)
            if not isinstance(layer, Dropout):
                now.activations[path] = x
        return x


def loss(kind: str, output: Any, target: Any) -> Any:
    """Give the mean loss; in float32 at least."""
    output = tf.cast(output, tf.float64 if output.dtype == tf.float64 else tf.float32)
    if kind == "cross-entropy":
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=output)
        return tf.reduce_mean(each)
    return tf.reduce_mean(tf.math.squared_difference(output, tf.cast(target, output.dtype)))
