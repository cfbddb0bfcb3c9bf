"""Draw a start without kinks, where fp32's gradients of a whole network can be compared.

From an ordinary start a correct ResNet-50 in fp32 is 20 % off float64: values near zero fall on the
other side of a ReLU. Here some channels before a ReLU lie wholly above zero for the given samples
and some wholly below, so that a skipped ReLU shows. What is below passes no gradient, and decay and
momentum stand there alone. In max-pooling two nearly equal values do the same harm: a start where a
living window has two has to be drawn again (``TooNear``), or the samples that have them.

Where dropouts drop, units are raised beyond what any mask may change (``_DEVIATIONS``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.exact.layer import Array
from harness.exact.passes import alone
from harness.exact.windows import window_values
from harness.gate.tensors import draws
from harness.worker.network.layers import (
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Flatten,
    Heads,
    Layer,
    LeakyReLU,
    MaxPool,
    Network,
    Product,
    ReLU,
    Residual,
)
from harness.worker.network.shapes import sites

_MARGIN = 0.5
"""How far from zero a channel stays, in its own standard deviations."""
_DEVIATIONS = 10.0
"""How many standard deviations of what masks may change."""
_NEAREST = 1e-6
"""What fp32 may confuse, of the largest value."""
_SHIFTED_BY: dict[type, str] = {Conv: "bias", Dense: "bias", BatchNorm: "beta"}


_BEHIND_DROPOUTS = (Dropout, ReLU, LeakyReLU, Dense, Flatten)
"""Layers behind which it is known what masks may change."""


@dataclass(frozen=True)
class Start:
    """A start without kinks and the batches of the updates from it."""

    state: Mapping[str, Array]
    pictures: Array
    batches: Sequence[tuple[int, ...]]
    """For each update, which pictures fill its batch."""
    targets: Sequence[Any]
    living: Mapping[str, Any]
    """Of the inputs of each dropout: which are not zero, by picture."""
    lives: Sequence[int | None]
    """Which sample alone has a gradient; None: all have."""
    parts: int = 1
    """In how many equal parts batch norms see a batch: those of ranks, unless synchronised."""


class NoStart(Exception):
    """Say why a network cannot be given a start without kinks."""


class TooNear(Exception):
    """Say that a value comes too near to a ReLU's kink, or to the largest of its window."""

    def __init__(self, path: str, samples: Sequence[int] = ()) -> None:
        super().__init__(path)
        self.samples = tuple(samples)
        """In which samples, where others in their place would help."""


@dataclass
class Raised:
    """A network's start, raised layer by layer while one batch walks through it."""

    network: Network
    state: dict[str, Array]
    seed: str
    times: Array
    """How often each sample stands in the batch."""
    parts: int = 1
    """In how many equal parts batch norms see the batch."""
    held: str = "fp32"
    """The precision that weights are held in."""
    living: dict[str, npt.NDArray[np.bool_]] = field(default_factory=dict)
    """Of what enters a dropout: what is not zero."""
    _noise: Array | None = None
    """Variance that the masks of dropouts so far cause."""
    _shifted_by: str | None = None
    """The parameter that moves whole channels of the current values."""

    def walk(self, x: Array) -> Array:
        """Walk through the network; give its output, with nothing dropped."""
        self._sites = {site.path: site for site in sites(self.network)}
        return self._row(self.network.layers, "", x)

    @property
    def noise(self) -> float:
        """How far the masks may move an output."""
        if self._noise is None:
            return 0.0
        return _DEVIATIONS * float(np.sqrt(self._noise.max()))

    def _row(self, layers: Sequence[Layer], prefix: str, x: Array) -> Array:
        for layer in layers:
            x = self._layer(layer, prefix + layer.name, x)
        return x

    def _layer(self, layer: Layer, path: str, x: Array) -> Array:
        if isinstance(layer, Residual):
            body = self._row(layer.body, f"{path}/", x)
            return body + self._row(layer.shortcut, f"{path}/", x)
        if isinstance(layer, Product):
            body = self._row(layer.body, f"{path}/", x)
            return body * self._row(layer.gate, f"{path}/", x)
        if isinstance(layer, Heads):
            first = self._row(layer.positions, f"{path}/", x).reshape(len(x), -1)
            return np.concatenate([first, self._row(layer.sample, f"{path}/", x)], axis=1)
        if isinstance(layer, (ReLU, LeakyReLU)):
            x = self._raised(path, x, getattr(layer, "slope", 0.0))
        if isinstance(layer, MaxPool):
            distances = _distances_of_windows(layer, x, self._sites[path].output[1:])
            if np.any(near := distances < _NEAREST):
                raise TooNear(path, np.flatnonzero(near).tolist())
        y = self._alone(layer, path, x)
        self._follow(layer, path, x)
        return y

    def _alone(self, layer: Layer, path: str, x: Array) -> Array:
        site, parts = self._sites[path], self.parts if isinstance(layer, BatchNorm) else 1
        split = zip(np.split(x, parts), np.split(self.times, parts), strict=True)
        return np.concatenate([alone(site, self.state, one, times)[0] for one, times in split])

    def _follow(self, layer: Layer, path: str, x: Array) -> None:
        """Follow what shifts whole channels, and what masks change."""
        kind = _SHIFTED_BY.get(type(layer))
        name = f"{path}/{kind}"
        if kind is not None:
            self._shifted_by = name if name in self.state else None
        elif not isinstance(layer, MaxPool):
            self._shifted_by = None
        noise = np.zeros_like(x) if self._noise is None else self._noise
        if isinstance(layer, Dropout):
            self.living[path] = x != 0
            self._noise = (noise + layer.rate * x * x) / (1 - layer.rate)
        elif self._noise is None:
            return
        elif isinstance(layer, Dense):
            self._noise = noise @ np.square(self.state[f"{path}/weight"]).T
        elif isinstance(layer, Flatten):
            self._noise = noise.reshape(len(noise), -1)

    def _raised(self, path: str, x: Array, slope: float) -> Array:
        """Shift each channel wholly above zero or wholly below, where the slope is another."""
        others = (0, *range(2, x.ndim))
        noise = np.zeros(x.shape[1])
        if self._noise is not None:
            noise = _DEVIATIONS * np.sqrt(self._noise.max(axis=0))
        low, high = x.min(axis=others) - noise, x.max(axis=others) + noise
        largest = float(np.max(np.abs(x)))
        shift = self._shift(path, low, high, _MARGIN * x.std(axis=others) + 0.02 * largest)
        x = x + shift.reshape(-1, *[1] * (x.ndim - 2))
        low, high = low + shift, high + shift
        is_above = low > -high
        nearest = np.where(is_above, low, -high).min()
        if float(nearest) / largest < _NEAREST:
            raise TooNear(path)
        if self._noise is not None:
            self._noise = self._noise * np.where(is_above, 1.0, slope**2)
        return x

    def _shift(self, path: str, low: Array, high: Array, margin: Array) -> Array:
        name = self._shifted_by
        if name is None:
            raise NoStart(f"nothing before {path} shifts whole channels")
        order = np.argsort(draws.normal(f"{self.seed}/above/{path}", low.shape))
        is_above = order < (len(order) + 1) // 2
        before = self.state[name]
        after = draws.to(self.held, before + np.where(is_above, margin - low, -margin - high))
        self.state[name] = after
        shift: Array = after - before
        return shift


def filled(chance: np.random.Generator, each: int, most: int, parts: int) -> list[list[int]]:
    """Fill each part of a batch with pictures of its own, each another number of times if it can.

    One picture in two parts gives two values wherever a norm stands before, which may come near.
    """
    more = (most * chance.random((parts, each - most)) ** 2).astype(int)
    rows = np.hstack([np.tile(np.arange(most), (parts, 1)), more])
    found: list[list[int]] = (rows + most * np.arange(parts)[:, None]).tolist()
    return found


def out_of_reach(network: Network) -> str | None:
    """Name the first layer behind a dropout for which it is not known what masks may change."""
    walked = [site for site in sites(network) if not isinstance(site.layer, Residual)]
    drops = [isinstance(site.layer, Dropout) for site in walked]
    behind = walked[drops.index(True) :] if any(drops) else []
    return next((s.path for s in behind if not isinstance(s.layer, _BEHIND_DROPOUTS)), None)


def _distances_of_windows(layer: MaxPool, x: Array, counts: Sequence[int]) -> Array:
    """Say of each sample how near a window's second value comes to its largest.

    What a ReLU cut off is zero, and no gradient passes there.
    """
    values = window_values(layer, x, counts)
    if len(values) == 1:
        return np.full(len(x), np.inf)
    values.partition(len(values) - 2, axis=0)
    second, first = values[-2:]
    gaps = np.where(first != 0, first - second, np.inf)
    distances: Array = gaps.reshape(len(x), -1).min(axis=1) / np.max(np.abs(x))
    return distances
