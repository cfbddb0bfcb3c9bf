"""Compute networks with loops over windows, in float64, to hold a lowering to.

Python 3.7 grammar: it runs beside TensorFlow 1.15, too.
"""

import itertools

import numpy

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
    Residual,
    Scale,
    Tanh,
)


class PlainLoops:
    """One pass in training mode: activations by path, and the running statistics after it."""

    def __init__(self, network, values, is_bessel_corrected=True):
        self.values = values
        self.is_bessel_corrected = is_bessel_corrected
        self.activations = {}
        self.statistics = {}
        self.network = network

    def run(self, x):
        return self._all(self.network.layers, "", x)

    def _all(self, layers, prefix, x):
        for layer in layers:
            path = prefix + layer.name
            if isinstance(layer, Residual):
                body = self._all(layer.body, path + "/", x)
                x = body + self._all(layer.shortcut, path + "/", x)
            else:
                x = self._one(layer, path, x)
            self.activations[path] = x
        return x

    def _one(self, layer, path, x):
        if isinstance(layer, (Conv, Dense)):
            bias = self.values[path + "/bias"] if layer.bias else 0.0
            weight = self.values[path + "/weight"]
            if isinstance(layer, Dense):
                return x @ weight.T + bias
            y = convolved(layer, x, weight)
            return y + numpy.reshape(bias, (1, -1) + (1,) * (x.ndim - 2))
        if isinstance(layer, BatchNorm):
            return self._normalised(layer, path, x)
        if isinstance(layer, (MaxPool, AveragePool)):
            return pooled(layer, x)
        if isinstance(layer, LRN):
            half, squares = layer.size // 2, x * x
            sums = numpy.stack(
                [
                    squares[:, max(c - half, 0) : c + half + 1].sum(axis=1)
                    for c in range(x.shape[1])
                ],
                axis=1,
            )
            return x / (layer.k + layer.alpha * sums) ** layer.beta
        if isinstance(layer, GlobalAverage):
            return x.mean(axis=tuple(range(2, x.ndim)))
        simple = {
            Dropout: lambda: x,
            Flatten: lambda: x.reshape(len(x), -1),
            LeakyReLU: lambda: numpy.where(x > 0, x, layer.slope * x),
            ReLU: lambda: numpy.maximum(x, 0),
            Scale: lambda: x * layer.factor,
            Tanh: lambda: numpy.tanh(x),
        }
        return simple[type(layer)]()

    def _normalised(self, layer, path, x):
        axes = (0, *range(2, x.ndim))
        shape = (1, -1) + (1,) * (x.ndim - 2)
        gamma, beta, mean, variance = (
            self.values[path + "/" + kind] for kind in ("gamma", "beta", "mean", "variance")
        )
        now_mean, now_variance = x.mean(axis=axes), x.var(axis=axes)
        count = x.size / x.shape[1]
        kept = now_variance * (count / (count - 1) if self.is_bessel_corrected else 1)
        m = layer.momentum
        self.statistics[path + "/mean"] = (1 - m) * mean + m * now_mean
        self.statistics[path + "/variance"] = (1 - m) * variance + m * kept
        scale = gamma / numpy.sqrt(now_variance + layer.epsilon)
        return (x - now_mean.reshape(shape)) * scale.reshape(shape) + beta.reshape(shape)


def windows(x, kernel, stride, counts):
    for position in itertools.product(*(range(count) for count in counts)):
        place = tuple(slice(p * stride, p * stride + kernel) for p in position)
        yield (slice(None), slice(None), *position), x[(slice(None), slice(None), *place)]


def convolved(layer, x, weight):
    rank = x.ndim - 2
    x = numpy.pad(x, [(0, 0), (0, 0)] + [layer.pad] * rank, mode="constant")
    counts = [(size - layer.kernel) // layer.stride + 1 for size in x.shape[2:]]
    y = numpy.zeros((len(x), layer.channels, *counts))
    into, out = x.shape[1] // layer.groups, layer.channels // layer.groups
    for at, window in windows(x, layer.kernel, layer.stride, counts):
        for group in range(layer.groups):
            inputs = window[:, group * into : (group + 1) * into].reshape(len(x), -1)
            kernels = weight[group * out : (group + 1) * out].reshape(out, -1)
            y[at][:, group * out : (group + 1) * out] = inputs @ kernels.T
    return y


def pooled(layer, x):
    rank = x.ndim - 2
    before, after = getattr(layer, "pad", (0, 0))
    counts = []
    for size in x.shape[2:]:
        room = before + size + after - layer.kernel
        count = room // layer.stride + 1
        is_over = getattr(layer, "ceil", False) and room % layer.stride
        if is_over and count * layer.stride < before + size:
            count += 1
        counts.append(count)
    far = layer.kernel + layer.stride
    value = -numpy.inf
    pads = [(0, 0), (0, 0)] + [(before, after + far)] * rank
    padded = numpy.pad(x, pads, mode="constant", constant_values=value)
    y = numpy.zeros((len(x), x.shape[1], *counts))
    reduce = numpy.max if isinstance(layer, MaxPool) else numpy.mean
    for at, window in windows(padded, layer.kernel, layer.stride, counts):
        y[at] = reduce(window, axis=tuple(range(2, x.ndim)))
    return y
