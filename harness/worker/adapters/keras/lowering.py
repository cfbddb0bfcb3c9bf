"""Assemble a functional Keras model and know which of its layers is which of ours."""

from __future__ import annotations

from functools import wraps
from typing import Any, Dict, List, Sequence

import keras
from keras import layers

from harness.worker.adapters.keras.layers import written
from harness.worker.adapters.tensorflow.lowering.layouts import Arrangement
from harness.worker.attribution.marks import Mark, unmarked
from harness.worker.network.layers import Dropout, Heads, Layer, Network, Product, Residual
from harness.worker.network.sequence_layers import TiedDense
from harness.worker.network.shapes import decayed, vocabulary

KINDS = {
    "weight": "kernel",
    "bias": "bias",
    "gamma": "gamma",
    "beta": "beta",
    "mean": "moving_mean",
    "variance": "moving_variance",
}
"""What Keras' layers call what they hold; those below call one thing otherwise."""
OTHERWISE = {
    layers.Embedding: {"weight": "embeddings"},
    layers.RMSNormalization: {"gamma": "scale"},
}


class KerasLowering:
    """A network as a Keras model."""

    def __init__(self, network: Network, is_dropping: bool, mark: Mark = unmarked) -> None:
        self.mark = mark
        self.arrangement = Arrangement(network, channels_last=True, lifts=False)
        self._network = network
        self._is_dropping = is_dropping
        self.parts: Dict[str, List[Any]] = {}
        self._seen: Dict[str, Any] = {}
        kind = None if vocabulary(network) is None else "int32"
        x = keras.Input(self.arrangement.sample(), dtype=kind)
        self._input = x
        self._output = self._run(network.layers, "", x)
        self.model = keras.Model(x, self._output)

    def watched(self) -> Any:
        """Give the model with every layer's output by path beside its own, for the gate."""
        return keras.Model(self._input, {"output": self._output, "layers": self._seen})

    def call(self, path: str, x: Any) -> Any:
        """Run one layer alone, as it trains."""
        for part in self.parts[path]:
            trains = isinstance(part, (layers.Dropout, layers.BatchNormalization))
            x = part(x, training=True) if trains else part(x)
        return x

    def values(self) -> Dict[str, Any]:
        """Give every parameter and running statistic as its TensorFlow variable."""
        names = (*self.arrangement.parameters, *self.arrangement.statistics)
        return {name: self.variable(name).value for name in names}

    def variable(self, name: str) -> Any:
        """Find the Keras variable of a PARAMETER."""
        path, _, kind = name.rpartition("/")
        holder = self.parts[path][-1]
        return getattr(holder, OTHERWISE.get(type(holder), {}).get(kind, KINDS[kind]))

    def decayed(self) -> Sequence[str]:
        """Name the parameters that weight decay touches."""
        return decayed(self._network)

    def _run(self, network_layers: Sequence[Layer], prefix: str, x: Any) -> Any:
        for layer in network_layers:
            path = prefix + layer.name
            if isinstance(layer, Residual):
                body = self._run(layer.body, path + "/", x)
                shortcut = self._run(layer.shortcut, path + "/", x)
                x = self._marked(layers.Add(), path)([body, shortcut])
            elif isinstance(layer, Product):
                body = self._run(layer.body, path + "/", x)
                gate = self._run(layer.gate, path + "/", x)
                x = self._marked(layers.Multiply(), path)([body, gate])
            elif isinstance(layer, Heads):
                first = self._run(layer.positions, path + "/", x)
                return [first, self._run(layer.sample, path + "/", x)]
            else:
                self.parts[path] = written(self.arrangement.spots[path])
                if isinstance(layer, TiedDense):
                    self.parts[path][-1].table = self.parts[layer.to][-1]
                if not isinstance(layer, Dropout) or self._is_dropping:
                    for part in self.parts[path]:
                        x = self._marked(part, path)(x)
            if not isinstance(layer, Dropout):
                self._seen[path] = x
        return x

    def _marked(self, part: Any, path: str) -> Any:
        """Let a Keras layer carry the mark of ours in all that it computes, where any is made."""
        if self.mark is not unmarked:
            call = part.call

            @wraps(call)
            def marked(*given: Any, **how: Any) -> Any:
                with self.mark(path):
                    return call(*given, **how)

            part.call = marked
        return part
