"""Compute the layers that work item by item or on flat samples, and list all layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from harness.exact.layer import Array, Forward, Own
from harness.exact.norms import RUNNING, batch_norm, lrn
from harness.exact.sequences import SEQUENCE_LAYERS
from harness.exact.windows import average_pool, conv, max_pool
from harness.worker.network.layers import (
    LRN,
    AveragePool,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Flatten,
    GlobalAverage,
    LeakyReLU,
    MaxPool,
    ReLU,
    Scale,
    Tanh,
)


def compute(
    layer: Any, x: Array, own: Own, counts: Sequence[int], times: Array | None = None
) -> Forward:
    """Compute one layer with none inside; ``counts`` are the windows along each dimension.

    ``times`` says how often each sample stands in the batch: it matters to statistics alone.
    """
    weighted = () if times is None or type(layer) not in RUNNING else (times,)
    return LAYERS[type(layer)](layer, x, own, counts, *weighted)


def _dense(layer: Dense, x: Array, own: Own, _counts: Sequence[int]) -> Forward:
    weight = own["weight"]

    def back(slope: Array) -> tuple[Array, Own]:
        rows = slope.reshape(-1, layer.features)  # of a sequence: every position
        found = {"weight": rows.T @ x.reshape(len(rows), -1), "bias": rows.sum(axis=0)}
        return slope @ weight, found if layer.bias else {"weight": found["weight"]}

    y = x @ weight.T
    return y + own["bias"] if layer.bias else y, back


def _relu(_layer: ReLU, x: Array, _own: Own, _counts: Sequence[int]) -> Forward:
    return np.maximum(x, 0.0), lambda slope: (np.where(x > 0, slope, 0.0), {})


def _leaky(layer: LeakyReLU, x: Array, _own: Own, _counts: Sequence[int]) -> Forward:
    gain = np.where(x > 0, 1.0, layer.slope)
    return x * gain, lambda slope: (slope * gain, {})


def _tanh(_layer: Tanh, x: Array, _own: Own, _counts: Sequence[int]) -> Forward:
    y = np.tanh(x)
    return y, lambda slope: (slope * (1 - y * y), {})


def _scale(layer: Scale, x: Array, _own: Own, _counts: Sequence[int]) -> Forward:
    return x * layer.factor, lambda slope: (slope * layer.factor, {})


def _global_average(_: GlobalAverage, x: Array, _own: Own, _counts: Sequence[int]) -> Forward:
    positions = tuple(range(2, x.ndim))
    share = np.full(x.shape, x.shape[0] * x.shape[1] / x.size)

    def back(slope: Array) -> tuple[Array, Own]:
        return share * slope.reshape(*slope.shape, *[1] * len(positions)), {}

    return x.mean(axis=positions), back


def _flatten(_layer: Flatten, x: Array, _own: Own, _counts: Sequence[int]) -> Forward:
    return x.reshape(len(x), -1), lambda slope: (slope.reshape(x.shape), {})


def _dropout(_layer: Dropout, x: Array, _own: Own, _counts: Sequence[int]) -> Forward:
    """Drop nothing: chance cannot be compared."""
    return x, lambda slope: (slope, {})


LAYERS: dict[type, Callable[..., Forward]] = {
    Conv: conv,
    Dense: _dense,
    BatchNorm: batch_norm,
    ReLU: _relu,
    LeakyReLU: _leaky,
    Tanh: _tanh,
    Scale: _scale,
    LRN: lrn,
    MaxPool: max_pool,
    AveragePool: average_pool,
    GlobalAverage: _global_average,
    Flatten: _flatten,
    Dropout: _dropout,
    **SEQUENCE_LAYERS,
}
