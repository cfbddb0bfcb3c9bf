"""Compute a whole network, forward and back, and keep what enters and leaves layers.

State, gradients and what is kept have the names of ``harness/worker/gate/subject.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from harness.exact.layer import Array, Forward
from harness.exact.layers import compute
from harness.exact.norms import RUNNING
from harness.worker.network.layers import Heads, Layer, Network, Product, Residual
from harness.worker.network.shapes import (
    Site,
    operands,
    sites,
    statistic_shapes,
)

State = Mapping[str, Array]
"""Every parameter and running statistic."""


class Pass:
    """One batch's way through a network in training mode.

    A dropout multiplies by its mask, which says 0 or 1 / (1 - rate) for each value; one without
    drops nothing. Where a sample stands several ``times`` in the batch it is computed once, and its
    slopes are those of all its copies together.
    """

    def __init__(
        self,
        network: Network,
        state: State,
        x: Array,
        masks: Mapping[str, Array] | None = None,
        times: Array | None = None,
    ) -> None:
        self.inputs: dict[str, Array] = {}
        """What entered each layer, by its path; of a residual, its parts only."""
        self.outputs: dict[str, Array] = {}
        """What left each layer, each residual and each product."""
        self.statistics: dict[str, Array] = {}
        """The running statistics after this batch."""
        self.slopes: dict[str, Array] = {}
        """After ``backward``: the gradient of each layer's output."""
        self.gradients: dict[str, Array] = {}
        """After ``backward``: the gradient of each parameter, from all who multiply by it."""
        self._state = state
        self._masks = masks or {}
        self._times = times
        self._sites = {site.path: site for site in sites(network)}
        self.output, self._back = self._row(network.layers, "", x)

    def backward(self, slope: Array) -> None:
        """Go back from the gradient of the output, once: the way is given up with what it held."""
        back, self._back = self._back, _spent
        back(slope)

    def _row(
        self, layers: Sequence[Layer], prefix: str, x: Array
    ) -> tuple[Array, Callable[[Array], Array]]:
        ways = []
        for layer in layers:
            x, way = self._layer(layer, prefix + layer.name, x)
            ways.append(way)

        def back(slope: Array) -> Array:
            for way in reversed(ways):
                slope = way(slope)
            return slope

        return x, back

    def _layer(self, layer: Layer, path: str, x: Array) -> tuple[Array, Callable[[Array], Array]]:
        if isinstance(layer, Residual):
            body, body_back = self._row(layer.body, f"{path}/", x)
            shortcut, shortcut_back = self._row(layer.shortcut, f"{path}/", x)
            self.outputs[path] = body + shortcut
            return self.outputs[path], lambda slope: body_back(slope) + shortcut_back(slope)
        if isinstance(layer, Product):
            return self._product(layer, path, x)
        if isinstance(layer, Heads):
            return self._heads(layer, path, x)
        site = self._sites[path]
        y, own_back = self._alone(site, x)
        self.inputs[path], self.outputs[path] = x, y
        if names := [name for name, _ in statistic_shapes(site)]:
            own = {name.rpartition("/")[2]: self._state[name] for name in names}
            for kind, value in RUNNING[type(layer)](layer, x, own, self._times).items():
                self.statistics[f"{path}/{kind}"] = value

        def back(slope: Array) -> Array:
            self.slopes[path] = slope
            before, found = own_back(slope)
            named = operands(site)
            for kind, gradient in found.items():
                name = named[kind]
                shared = self.gradients.get(name)
                self.gradients[name] = gradient if shared is None else shared + gradient
            return before

        return y, back

    def _product(
        self, layer: Product, path: str, x: Array
    ) -> tuple[Array, Callable[[Array], Array]]:
        body, body_back = self._row(layer.body, f"{path}/", x)
        gate, gate_back = self._row(layer.gate, f"{path}/", x)
        self.outputs[path] = body * gate
        return self.outputs[path], lambda slope: body_back(slope * gate) + gate_back(slope * body)

    def _heads(self, layer: Heads, path: str, x: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Put both heads' numbers side by side."""
        first, first_back = self._row(layer.positions, f"{path}/", x)
        second, second_back = self._row(layer.sample, f"{path}/", x)

        def back(slope: Array) -> Array:
            of_first, of_second = np.split(slope, [first[0].size], axis=1)
            return first_back(of_first.reshape(first.shape)) + second_back(of_second)

        return np.concatenate([first.reshape(len(x), -1), second], axis=1), back

    def _alone(self, site: Site, x: Array) -> Forward:
        if site.path not in self._masks:
            return alone(site, self._state, x, self._times)
        mask = self._masks[site.path]
        return x * mask, lambda slope: (slope * mask, {})


def _spent(_slope: Array) -> Array:
    raise RuntimeError("this pass has already gone back")


def alone(site: Site, state: State, x: Array, times: Array | None = None) -> Forward:
    """Compute one layer alone."""
    own = {kind: state[name] for kind, name in operands(site).items()}
    return compute(site.layer, x, own, site.output[1:], times)
