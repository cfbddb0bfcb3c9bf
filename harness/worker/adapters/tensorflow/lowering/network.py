"""Lower a network: its layers in order, its loss, and the values it starts from."""

from __future__ import annotations

from typing import Any, Callable, Dict, Sequence, Tuple

import numpy
import tensorflow.compat.v2 as tf

from harness.worker.adapters.tensorflow.lowering.layer_style import Pass, Style
from harness.worker.adapters.tensorflow.lowering.layers import run
from harness.worker.adapters.tensorflow.lowering.layouts import Arrangement
from harness.worker.attribution.marks import Mark, unmarked
from harness.worker.network.layers import Dropout, Heads, Layer, Network, Product, Residual
from harness.worker.network.rule import Parameter
from harness.worker.network.shapes import decayed, parameters, sites, statistics
from harness.worker.network.words import lowering_of
from harness.worker.network.workload import MASKED


class Lowering:
    """A network written in TensorFlow operations."""

    def __init__(self, network: Network, style: Style, mark: Mark = unmarked) -> None:
        self.network = network
        self.style = style
        self.mark = mark
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
        return decayed(self.network)

    def initial(self, seed: int) -> Dict[str, Any]:
        """Draw every parameter and running statistic, in this layout."""
        drawn = {}
        places = sites(self.network)
        named = [one for site in places for one in parameters(site)]
        named += [one for site in places for one in statistics(site)]
        for number, (name, held) in enumerate(named):
            canonical = numpy.broadcast_to(0.0, held.shape)
            shape = self.arrangement.parameter_in(name, canonical).shape
            drawn[name] = self._draw(held, shape, (seed, number))
        return drawn

    def _draw(self, held: Parameter, shape: Tuple[int, ...], seed: Tuple[int, int]) -> Any:
        if not held.deviation:
            return tf.fill(shape, tf.constant(held.mean, self.stored))
        return tf.random.stateless_normal(
            shape, seed, mean=held.mean, stddev=held.deviation, dtype=self.stored
        )

    def _run(self, layers: Sequence[Layer], prefix: str, now: Pass, x: Any) -> Any:
        for layer in layers:
            path = prefix + layer.name
            with self.mark(path):
                if isinstance(layer, Residual):
                    body = self._run(layer.body, path + "/", now, x)
                    x = body + self._run(layer.shortcut, path + "/", now, x)
                elif isinstance(layer, Product):
                    body = self._run(layer.body, path + "/", now, x)
                    x = body * self._run(layer.gate, path + "/", now, x)
                elif isinstance(layer, Heads):
                    first = self._run(layer.positions, path + "/", now, x)
                    return first, self._run(layer.sample, path + "/", now, x)
                else:
                    x = run(self.arrangement.spots[path], now, x)
            if not isinstance(layer, Dropout):
                now.activations[path] = x
        return x


def loss(kind: str, output: Any, target: Any, whole: Any) -> Any:
    """Give the mean loss; in float32 at least.

    Of a micro-batch it is the part that it adds to that of the ``whole`` batch's target.
    """
    wide = tf.nest.map_structure(_wide, output)
    return lowering_of(LOSSES, kind, "tensorflow")(wide, target, whole)


def _wide(output: Any) -> Any:
    return tf.cast(output, tf.float64 if output.dtype == tf.float64 else tf.float32)


def _part(mean: Any, target: Any, whole: Any) -> Any:
    """Give what the mean of some samples adds to that of all."""
    return mean if whole is target else mean * (int(target.shape[0]) / int(whole.shape[0]))


def _cross_entropy(output: Any, target: Any, whole: Any) -> Any:
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=output)
    return _part(tf.reduce_mean(each), target, whole)


def _token_cross_entropy(output: Any, target: Any, whole: Any) -> Any:
    is_asked = tf.not_equal(target, MASKED)
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.where(is_asked, target, tf.zeros_like(target)), logits=output
    )
    counted = tf.cast(is_asked, each.dtype)
    every = counted if whole is target else tf.cast(tf.not_equal(whole, MASKED), each.dtype)
    return tf.reduce_sum(each * counted) / tf.reduce_sum(every)


def _token_and_pair_cross_entropy(output: Any, target: Any, whole: Any) -> Any:
    tokens, pair = output
    own = target[:, :-1], target[:, -1]
    every = own if whole is target else (whole[:, :-1], whole[:, -1])
    of_pair = _cross_entropy(pair, own[1], every[1])
    return _token_cross_entropy(tokens, own[0], every[0]) + of_pair


def _mean_squared_error(output: Any, target: Any, whole: Any) -> Any:
    each = tf.math.squared_difference(output, tf.cast(target, output.dtype))
    return _part(tf.reduce_mean(each), target, whole)


LOSSES: Dict[str, Callable[[Any, Any, Any], Any]] = {
    "cross-entropy": _cross_entropy,
    "mean-squared-error": _mean_squared_error,
    "token-cross-entropy": _token_cross_entropy,
    "token-and-pair-cross-entropy": _token_and_pair_cross_entropy,
}
